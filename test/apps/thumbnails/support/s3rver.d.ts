// What the tests use of @20minutes/s3rver, which has no types of its own.
declare module '@20minutes/s3rver' {
  import type { Server } from 'node:http'

  export default class S3rver {
    constructor(options: {
      address: string
      port: number
      silent: boolean
      directory: string
      configureBuckets: { name: string }[]
    })
    readonly store: { putContent(path: string, content: unknown): Promise<[number, string]> }
    readonly httpServer: Server
    run(): Promise<{ address: string; port: number }>
    close(): Promise<void>
  }
}
