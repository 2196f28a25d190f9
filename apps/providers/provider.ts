// A provider: what a team writes to make its kind of resource. Operations by name; each is a function, or a function with
// the shape of its request and how it is retried.
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { HandlerContext } from 'redrive'

/** What an operation is given beside its request. */
export interface OperationContext extends HandlerContext {
  /** `ITL.Core/ResourceGroup` */
  readonly provider: string
  readonly operation: string
}

export type Run<Request = unknown> = (request: Request, context: OperationContext) => unknown

export interface Operation<Request = unknown> {
  /** Any Standard Schema validator. A request that does not fit is a dead letter at once. */
  readonly schema?: StandardSchemaV1<unknown, Request>
  /** The wait before it is tried again; beats what the worker's settings say for operations of this name. */
  readonly retryDelayMs?: number
  readonly run: Run<Request>
}

// biome-ignore lint/suspicious/noExplicitAny: operations of different requests have no other common type
export type AnyOperation = Operation<any> | Run<any>

/** `create`, `get`, `update`, `delete`, `list`, and any of its own. */
export type Provider = Readonly<Record<string, AnyOperation>>

/** Says the type of the request once: by its schema. */
export const operation = <Request>(of: Operation<Request>): Operation<Request> => of
