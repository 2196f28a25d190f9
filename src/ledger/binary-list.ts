// Lists in the format in which Postgres itself sends an array: nothing to escape and nothing to search for, on either side.
const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const OID = { text: 25, json: 114, uuid: 2950 }
/** UTF-16 units take at most so many bytes. */
const BYTES_PER_UNIT = 3
const UUID_BYTES = 16

const NO_VALUE = -1

export const jsonList = (texts: readonly (string | null)[]): Uint8Array => listOfTexts(OID.json, texts)
export const textList = (texts: readonly (string | null)[]): Uint8Array => listOfTexts(OID.text, texts)

function listOfTexts(oid: number, texts: readonly (string | null)[]): Uint8Array {
  const units = texts.reduce((sum, text) => sum + (text?.length ?? 0), 0)
  const list = newList(oid, texts.length, units * BYTES_PER_UNIT)
  let at = HEADER_BYTES
  for (const text of texts) {
    if (text === null) {
      list.writeInt32BE(1, 4)
      at = list.writeInt32BE(NO_VALUE, at)
      continue
    }
    const length = list.write(text, at + LENGTH_BYTES)
    list.writeInt32BE(length, at)
    at += LENGTH_BYTES + length
  }
  return list.subarray(0, at)
}

export function uuidList(ids: readonly string[]): Uint8Array {
  const list = newList(OID.uuid, ids.length, ids.length * UUID_BYTES)
  let at = HEADER_BYTES
  for (const id of ids) {
    at = list.writeInt32BE(UUID_BYTES, at)
    for (let index = 0; index < id.length; index += 2) {
      if (id.charCodeAt(index) === DASH) index += 1
      list[at++] = ((NIBBLE[id.charCodeAt(index)] as number) << 4) | (NIBBLE[id.charCodeAt(index + 1)] as number)
    }
  }
  return list
}

const DASH = '-'.charCodeAt(0)
const NIBBLE = Uint8Array.from({ length: 128 }, (_, code) => Number.parseInt(String.fromCharCode(code), 16) || 0)

function newList(oid: number, length: number, bytes: number): Buffer {
  const list = Buffer.allocUnsafe(HEADER_BYTES + length * LENGTH_BYTES + bytes)
  list.writeInt32BE(1, 0) // dimensions
  list.writeInt32BE(0, 4) // whether elements may be null
  list.writeInt32BE(oid, 8)
  list.writeInt32BE(length, 12)
  list.writeInt32BE(1, 16) // number of the first
  return list
}
