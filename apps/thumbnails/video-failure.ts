// What FFmpeg's end means for the job: whether another attempt can help, in words for a person, with FFmpeg's own below.
import { type KindError, NetworkError, PermanentError, SystemError, TransientError, ValidationError } from 'redrive'
import type { Limits, Run } from './limited-run.js'
import { STORAGE_SERVICE } from './storage.js'

/** FFmpeg's exit code when a signal asked it to end; nobody but the limit of processor time does. */
const ASKED_TO_END = 255

/** Its limits were about the file, not about the day: the same again on every attempt. */
const SIGNS: readonly (readonly [RegExp, (shown: string, match: RegExpExecArray) => KindError])[] = [
  [/matches no streams/, shown => new ValidationError(`${shown} has no video in it: is it audio only?`)],
  [
    /(?:max pixel count|Picture size \S+ is invalid|Invalid frame size|Video frame size)/i,
    shown => new ValidationError(`${shown} has frames that are larger than allowed`),
  ],
  [
    /Cannot allocate memory|Error while .*allocat/i,
    shown => new PermanentError(`${shown} needs more memory to decode than allowed`),
  ],
  [
    /moov atom not found/,
    shown => new PermanentError(`${shown} is incomplete or damaged: its index (moov) is missing`),
  ],
]
const NOT_DECODED = /Codec \(([\w-]{1,40})\) not on whitelist/g

export function videoFailure(
  run: Run,
  key: string,
  { limits, storageSlow }: { readonly limits: Limits; readonly storageSlow: boolean },
): KindError {
  const shown = JSON.stringify(key)
  const options = { cause: new FFmpegWords(run.words) }
  switch (run.end.type) {
    case 'time':
      if (storageSlow)
        return new NetworkError(`Storage was too slow to read ${shown} within ${limits.timeMs / 1000} s`, {
          ...options,
          service: STORAGE_SERVICE,
        })
      return new TransientError(`${shown} could not be decoded within ${limits.timeMs / 1000} s`, elsewhere(options))
    case 'output':
      return new PermanentError(`The frame of ${shown} is larger than ${limits.outputBytes} bytes`, options)
    case 'killed':
      if (run.end.signal === 'SIGSEGV' || run.end.signal === 'SIGABRT' || run.end.signal === 'SIGILL')
        return new PermanentError(`FFmpeg crashed on ${shown} (${run.end.signal})`, options)
      return new SystemError(`FFmpeg was killed (${run.end.signal}) while it read ${shown}`, elsewhere(options))
    case 'exited':
      if (run.end.code === ASKED_TO_END)
        return new PermanentError(`${shown} needs more than ${limits.cpuSeconds} s of processor time`, options)
  }
  for (const [pattern, failure] of SIGNS) {
    const match = pattern.exec(run.words)
    if (match) return Object.assign(failure(shown, match), options)
  }
  const notDecoded = codecNotDecoded(run.words)
  if (notDecoded !== undefined)
    return new ValidationError(`${shown} is encoded with ${notDecoded}, which is not decoded here`, options)
  return new PermanentError(`${shown} is damaged or not what it seems: FFmpeg cannot read it`, options)
}

/** Audio is never decoded and said to be so; what counts is the codec whose decoder was to be opened. */
function codecNotDecoded(words: string): string | undefined {
  const opening = words.indexOf('Error while opening decoder')
  return opening < 0 ? undefined : [...words.slice(0, opening).matchAll(NOT_DECODED)].at(-1)?.[1]
}

/** Without a time: there is none at all. */
export function noFrame(key: string, at?: number | string, words = ''): KindError {
  const shown = JSON.stringify(key)
  if (at === undefined)
    return new PermanentError(`${shown} has no frame that can be decoded`, { cause: new FFmpegWords(words) })
  if (typeof at === 'number') return new ValidationError(`${shown} has no frame at ${at} s: it is shorter`)
  return new ValidationError(`${shown} does not tell its length, so ${at} of it is not known: give seconds`)
}

/** It says nothing about the health of storage. */
const elsewhere = (options: { readonly cause: Error }) => ({ ...options, service: 'ffmpeg' })

/** What FFmpeg said, as the cause of a failure. Its stack would only be ours. */
class FFmpegWords extends Error {
  override readonly name = 'FFmpeg'

  constructor(words: string) {
    super(words.trim().replaceAll(/http:\/\/127\.0\.0\.1:\d+\/\S+/g, 'the input') || 'FFmpeg said nothing')
    this.stack = `${this.name}: ${this.message}`
  }
}
