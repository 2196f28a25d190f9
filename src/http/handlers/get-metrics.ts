import { metrics } from '../../telemetry/metrics.js'
import type { Call } from '../route.js'

export async function getMetrics({ backend, header }: Call) {
  const { contentType, text } = metrics(backend)
  header('content-type', contentType)
  return text()
}
