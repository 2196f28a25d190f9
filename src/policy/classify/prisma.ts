// Prisma: its own codes, in `code` of a request's error and in `errorCode` of one that happened at the start.
import { textProp } from '../read.js'
import { byWord, type Source } from './evidence.js'

const CODES = byWord({
  network: 'P1001 P1011 P1017',
  // Over a time limit, out of connections, a transaction that expired, a conflict between two.
  transient: 'P1002 P1008 P2024 P2028 P2034 P2037 P5011',
  authentication: 'P1000 P1010 P6002',
  validation: 'P2000 P2005 P2006 P2007 P2009 P2011 P2012 P2013 P2019 P2020 P2023 P2033',
  permanent: `P1003 P1009 P1012 P1013 P1014 P1015 P1016 P2001 P2002 P2003 P2004 P2008 P2010 P2014 P2015 P2016 P2017
    P2018 P2021 P2022 P2025 P2026 P2029 P2030 P2031`,
})

export const prisma: Source = ({ error, type, code }) => {
  if (!type.startsWith('PrismaClient')) return undefined
  if (type === 'PrismaClientValidationError') return { kind: 'validation', because: 'Prisma: the query does not fit' }
  if (type === 'PrismaClientRustPanicError') return { kind: 'system', because: "Prisma's engine crashed" }
  const stated = textProp(error, 'errorCode') ?? code
  const kind = stated === undefined ? undefined : CODES.get(stated)
  return kind && { kind, because: `Prisma code ${stated}` }
}
