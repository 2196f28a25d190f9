// `redrive/http`: the HTTP API, to mount in a server of your own.
export type { Backend } from './backend.js'
export { createHttp, type Http, type HttpOptions } from './create-http.js'
export type { FeedOptions } from './feed.js'
export { type Served, type ServeOptions, serve } from './serve.js'
export type { ThrottleOptions } from './throttle.js'
