// What a program does about provider jobs: submits them, looks at those that died, sends them back. The same, and more, is
// there over HTTP (`redrive/http`) and on the command line.
import {
  type DeadLetter,
  type DeadLetterFilter,
  type Enqueued,
  type EnqueueOptions,
  type ListOptions,
  type Redrive,
  RedriveError,
  type RedriveResult,
} from 'redrive'
import { QUEUE } from './operation-job.js'
import type { ProviderWorker } from './provider-worker.js'
import type { ProviderRequest } from './request.js'

export type LetterFilter = Omit<DeadLetterFilter, 'queue'>

/** `by`: who says so, for the audit. */
export interface By {
  readonly by?: string
}

export class ProviderDesk {
  readonly #redrive: Redrive
  readonly #worker: ProviderWorker

  constructor(redrive: Redrive, worker: ProviderWorker) {
    this.#redrive = redrive
    this.#worker = worker
  }

  submit(request: ProviderRequest, options: Omit<EnqueueOptions, 'priority'> = {}): Promise<Enqueued> {
    const { operation, priority } = request
    const job = this.#worker.jobFor(operation)
    return this.#redrive.enqueue(job, request, { ...options, ...(priority !== undefined && { priority }) })
  }

  /** Newest first; open ones unless `status` says otherwise. */
  deadLetters(filter: LetterFilter = {}, page: ListOptions = {}) {
    return this.#redrive.operator.deadLetters.list({ status: 'pending', ...filter, queue: QUEUE }, page)
  }

  /** Sends one back as it was: the provider was mended. */
  resubmit(id: string, { by }: By = {}): Promise<DeadLetter> {
    return this.#redrive.operator.deadLetters.retry(id, acting(by))
  }

  /** Sends back all open ones that fit now. */
  resubmitMany(filter: LetterFilter = {}, { by }: By = {}): Promise<RedriveResult> {
    return this.#redrive.operator.deadLetters.retryMany({ ...filter, queue: QUEUE }, acting(by))
  }

  /**
   * The request was wrong: submits it anew with another one, and closes the letter, which keeps what was asked at first. Called
   * again after a crash in between, it finds the new job by its key and does not make a second one while that lives.
   */
  async resubmitWith(id: string, request: ProviderRequest['request'], { by }: By = {}): Promise<Enqueued> {
    const { deadLetters } = this.#redrive.operator
    const letter = await deadLetters.get(id)
    const { payload, status, jobPriority: priority, tenant, user, project } = letter
    if (status !== 'pending') throw new RedriveError('NOT_PENDING', `Dead letter ${id} is ${status}, not open`)
    const corrected = { ...(payload as unknown as ProviderRequest), request, priority }
    const submitted = await this.submit(corrected, {
      uniqueKey: `corrects ${id}`,
      ...(tenant !== undefined && { tenant }),
      ...(user !== undefined && { user }),
      ...(project !== undefined && { project }),
    })
    await deadLetters.markFailed(id, { ...acting(by), reason: `corrected and submitted again as ${submitted.id}` })
    return submitted
  }
}

const acting = (by: string | undefined) => (by === undefined ? {} : { actor: by })
