// What the tests use of @20minutes/s3rver, which has no types of its own.
declare module '@20minutes/s3rver' {
  import type { Server } from 'node:http'

  interface Context {
    readonly method: string
    readonly query: Readonly<Record<string, string | string[] | undefined>>
    readonly response: { get(name: string): string }
    status: number
    body: unknown
    get(name: string): string
  }

  export default class S3rver {
    constructor(options: {
      address: string
      port: number
      silent: boolean
      directory: string
      configureBuckets: { name: string }[]
    })
    readonly store: { putContent(path: string, content: unknown): Promise<[number, string]> }
    readonly middleware: ((ctx: Context, next: () => Promise<void>) => Promise<void>)[]
    readonly httpServer: Server
    run(): Promise<{ address: string; port: number }>
    close(): Promise<void>
  }
}
