// Every question, in the order of the targets.
import awaiting from './awaiting.mjs'
import backlog from './backlog.mjs'
import batchEnqueue from './batch-enqueue.mjs'
import broker from './broker.mjs'
import containment from './containment.mjs'
import cost from './cost.mjs'
import deadLetters from './dead-letters.mjs'
import desk from './desk.mjs'
import deskHttp from './desk-http.mjs'
import drain from './drain.mjs'
import embedded from './embedded.mjs'
import heldXmin from './held-xmin.mjs'
import idle from './idle.mjs'
import kill from './kill.mjs'
import latency from './latency.mjs'
import memory from './memory.mjs'
import mixed from './mixed.mjs'
import neverAnalyzed from './never-analyzed.mjs'
import oneByOneEnqueue from './one-by-one-enqueue.mjs'
import payloads from './payloads.mjs'
import processes from './processes.mjs'
import readers from './readers.mjs'
import redrive from './redrive.mjs'
import thumbnails from './thumbnails.mjs'

/** @type {readonly import('../harness/rounds.mjs').Question[]} */
export const questions = [
  batchEnqueue,
  oneByOneEnqueue,
  drain,
  processes,
  payloads,
  awaiting,
  latency,
  idle,
  deadLetters,
  redrive,
  mixed,
  embedded,
  backlog,
  heldXmin,
  neverAnalyzed,
  containment,
  desk,
  deskHttp,
  readers,
  memory,
  kill,
  cost,
  broker,
  thumbnails,
]
