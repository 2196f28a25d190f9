// One clock for all processes of this machine: Node's is CLOCK_MONOTONIC, whose zero they share.

/** Milliseconds. */
export const now = () => Number(process.hrtime.bigint()) / 1e6

/** @param {number} ms */
export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
