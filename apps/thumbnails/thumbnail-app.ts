// The thumbnail worker put together from the environment: the job, and what has to be open while it runs.
import type { JobDefinition, Log, Redrive } from 'redrive'
import { isRedriveError, KindError, PermanentError } from 'redrive'
import { findFFmpeg } from './ffmpeg.js'
import { watchInbox } from './inbox.js'
import { limitsMemory } from './limited-run.js'
import type { ThumbnailParams, ThumbnailRequest, ThumbnailResult } from './payload.js'
import { sweepTemporary } from './picture.js'
import { RangedReads } from './ranged-reads.js'
import { type Environment, readSettings } from './settings.js'
import { type ThumbnailParts, thumbnailJob } from './thumbnail-job.js'

/** What `redrive work` and `redrive serve` give to a module's `setup`. */
export interface SetupContext {
  readonly redrive: Redrive
  readonly env: Environment
  readonly log: Log
}

export interface ThumbnailApp {
  readonly thumbnail: JobDefinition<ThumbnailRequest, { input_key: string; params: ThumbnailParams }, ThumbnailResult>
  /** Opens what the job needs; what it returns closes it again. */
  setup(context: SetupContext): Promise<() => Promise<void>>
}

export function createThumbnailApp(env: Environment): ThumbnailApp {
  const settings = readSettings(env)
  const ffmpeg = findFFmpeg(env)
  let open: Promise<ThumbnailParts> | undefined
  const parts = () => {
    open ??= settings.openStorage().then(storage => ({ ...settings, storage, ranged: new RangedReads(), ffmpeg }))
    return open
  }
  const thumbnail = thumbnailJob(parts, settings.decoders)

  async function setup({ redrive, log }: SetupContext): Promise<() => Promise<void>> {
    const { storage, ranged } = await parts()
    const endings = [() => storage.close(), () => ranged.close()]
    const end = async () => {
      open = undefined
      await endAll(endings)
    }
    try {
      await checkStorage(storage, log)
      await openWaysIn(redrive, log, endings)
    } catch (error) {
      await end().catch(() => {}) // why it does not start is what is to be said
      throw error
    }
    await sweepTemporary().catch(error => log.warn('could not tidy up', { error: String(error) }))
    if (ffmpeg.bundled)
      log.warn('FFmpeg comes from an npm package and is of 2018: install your system’s for files of strangers')
    if (!limitsMemory) log.warn('There is no prlimit here: memory and processor time of FFmpeg are not limited')
    log.info('thumbnails are made', { storage: storage.name, ffmpeg: ffmpeg.path, decoders: settings.decoders })
    return end
  }

  async function openWaysIn(redrive: Redrive, log: Log, endings: (() => Promise<void>)[]): Promise<void> {
    if (settings.folder !== undefined)
      endings.push(
        await watchInbox({
          folder: settings.folder,
          log,
          enqueue: (input_key, uniqueKey) => redrive.enqueue(thumbnail, { input_key }, { uniqueKey }),
        }),
      )
    if (settings.redis) endings.push(await takeFromRedis(redrive, thumbnail, settings.redis))
  }
  return { thumbnail, setup }
}

/** Each of them, last one first, whatever the others do. */
async function endAll(endings: (() => Promise<void>)[]): Promise<void> {
  const failed: unknown[] = []
  for (const end of endings.splice(0).reverse()) await end().catch(error => failed.push(error))
  if (failed.length > 0) throw failed[0]
}

/** What will never work stops the start; a storage that is away does not: its breaker holds the jobs until it is back. */
async function checkStorage(storage: ThumbnailParts['storage'], log: Log): Promise<void> {
  try {
    await storage.check()
  } catch (error) {
    const hopeless = error instanceof PermanentError || !(error instanceof KindError || isRedriveError(error))
    if (hopeless) throw error
    log.warn('storage cannot be used at present', { storage: storage.name, error: (error as Error).message })
  }
}

/** A Redis list as a way in, for programs that know nothing of Redrive. Its client is loaded only where it is used. */
async function takeFromRedis(
  redrive: Redrive,
  job: ThumbnailApp['thumbnail'],
  { url, list }: { readonly url: string; readonly list: string },
): Promise<() => Promise<void>> {
  const { openInbox } = await import('redrive/transports/redis')
  const inbox = openInbox(redrive, { url, list, job })
  return () => inbox.close()
}
