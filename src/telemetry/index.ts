// `redrive/metrics`: metrics for Prometheus, with or without the HTTP API.
export { type Metrics, type MetricsSource, metrics } from './metrics.js'
