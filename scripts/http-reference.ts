// The OpenAPI document as a page for people: every call with what goes in, what comes out and what can go wrong, and every
// shape once. `npm run reference` writes it; a test compares.

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly default?: unknown
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: Schema
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>
  readonly description?: string
  readonly required?: boolean
}

interface Operation {
  readonly tags?: readonly string[]
  readonly summary?: string
  readonly description?: string
  readonly security?: readonly unknown[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content>>
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const PROBLEM = 'application/problem+json'

const HEAD = `# HTTP API: every call

<!-- Written by \`npm run reference\` from the OpenAPI document. Do not edit. -->

Written from the document at \`/api/queue-admin/openapi.json\`, which requests are checked against and answers are tested against. How to mount
the API, tokens, lists, idempotency and errors in general: [HTTP API](http.md). What each code means: [errors](errors.md).

A name with \`?\` may be left out. \`text(1–512)\` is bounded in its length, \`1–200\` in its value.`

const USUAL = (usual: readonly string[]): string =>
  `Every call that needs a token may answer ${usual.map(code => `\`${code}\``).join(', ')}; what is not usual is said with each.`

export function httpReference({ paths, components }: Document): string {
  const calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const usual = usualOf(calls.map(({ operation }) => operation))
  const tags = [...new Set(calls.map(({ operation }) => operation.tags?.[0] ?? ''))]
  const parts = tags.map(tag =>
    [
      `## ${tag.charAt(0).toUpperCase()}${tag.slice(1)}`,
      ...calls.filter(({ operation }) => operation.tags?.[0] === tag).map(call => callText(call, usual)),
    ].join('\n\n'),
  )
  const shapes = Object.entries(components.schemas)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]) => `### ${name}\n\n${shapeText(schema)}`)
  return `${[HEAD, USUAL([...usual]), ...parts, '## Shapes', ...shapes].join('\n\n')}\n`
}

interface NamedCall {
  readonly path: string
  readonly method: string
  readonly operation: Operation
}

function callText({ path, method, operation }: NamedCall, usual: ReadonlySet<string>): string {
  const { parameters = [], requestBody, responses, summary = '', description = 'No token needed.' } = operation
  const body = requestBody?.content?.['application/json']?.schema
  return [
    `### ${method.toUpperCase()} ${path}`,
    `${summary}. ${description}`,
    ...(parameters.length > 0 ? [table(['parameter', 'in', 'is'], parameters.map(parameterRow))] : []),
    ...(body
      ? [`Body${requestBody?.required ? '' : ' (may be left out)'}:${body.properties ? '\n\n' : ' '}${shapeText(body)}`]
      : []),
    answersOf(responses).join('\n\n'),
    ...problemsOf(operation, usual),
  ].join('\n\n')
}

const parameterRow = ({ name, in: where, required, schema }: Parameter): string[] => [
  `\`${name}\`${required ? '' : '?'}`,
  where,
  typeText(schema ?? {}),
]

function answersOf(responses: Operation['responses']): string[] {
  return Object.entries(responses).flatMap(([status, { content = {} }]) =>
    Object.entries(content)
      .filter(([type]) => type !== PROBLEM)
      .map(([type, { schema = {} }]) =>
        type === 'application/json' ? `Answers ${status}: ${typeText(schema)}.` : `Answers ${status}: \`${type}\`.`,
      ),
  )
}

/** Status and code of each problem that is described. */
const problemsIn = ({ responses }: Operation): [status: string, code: string][] =>
  Object.entries(responses)
    .filter(([, { content = {} }]) => PROBLEM in content)
    .flatMap(([status, { description = '' }]) =>
      (description.match(/[A-Z]+(?:_[A-Z]+)*\b/g) ?? [])
        .filter(code => code.length > 2)
        .map((code): [string, string] => [status, code]),
    )

/** Whether a status can be a problem or an answer: then its description is not one of codes. */
const mixes = ({ responses }: Operation): boolean =>
  Object.values(responses).some(({ content = {} }) => PROBLEM in content && Object.keys(content).length > 1)

/** What every call with a token may answer. */
function usualOf(operations: readonly Operation[]): ReadonlySet<string> {
  const [first = [], ...others] = operations
    .filter(operation => operation.security !== undefined && !mixes(operation))
    .map(operation => problemsIn(operation).map(([, code]) => code))
  return new Set(first.filter(code => others.every(other => other.includes(code))))
}

function problemsOf(operation: Operation, usual: ReadonlySet<string>): string[] {
  const told = problemsIn(operation).filter(([, code]) => operation.security === undefined || !usual.has(code))
  return told.length === 0 ? [] : [`Problems: ${told.map(([status, code]) => `${status} \`${code}\``).join(', ')}.`]
}

/** An object as a table of its fields; anything else in words. */
function shapeText(schema: Schema): string {
  if (!schema.properties) return `${typeText(schema)}.`
  const required = new Set(schema.required ?? [])
  const rows = Object.entries(schema.properties).map(([name, field]) => [
    `\`${name}\`${required.has(name) ? '' : '?'}`,
    typeText(field),
  ])
  return rows.length === 0 ? 'An empty object.' : table(['field', 'is'], rows)
}

function typeText(schema: Schema): string {
  const { $ref, enum: values, items, properties, additionalProperties, format } = schema
  if ($ref) {
    const name = $ref.split('/').at(-1) ?? ''
    return `[${name}](#${name.toLowerCase()})`
  }
  const either = schema.anyOf ?? schema.oneOf
  if (either) return either.map(typeText).join(' or ')
  if (schema.allOf) return schema.allOf.map(typeText).join(' and ')
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  const types = typesOf(schema)
  const orNull = types.includes('null') && !values?.includes(null) ? ' or null' : ''
  if (values) return values.map(value => `\`${value}\``).join(', ') + orNull
  const [type = 'any JSON'] = types.filter(one => one !== 'null')
  if (items) return `list${bounds(schema.minItems, schema.maxItems)} of ${typeText(items)}${orNull}`
  if (properties) return `{ ${fieldsText(schema)} }${orNull}`
  if (additionalProperties && additionalProperties !== true) return `map to ${typeText(additionalProperties)}${orNull}`
  if (type === 'string') return (format ?? `text${bounds(schema.minLength, schema.maxLength)}`) + orNull
  if (type === 'integer' || type === 'number') return numberText(schema, type) + orNull
  return type + orNull
}

const typesOf = ({ type }: Schema): readonly string[] =>
  type === undefined ? [] : typeof type === 'string' ? [type] : type

const fieldsText = ({ properties = {}, required = [] }: Schema): string =>
  Object.entries(properties)
    .map(([name, field]) => `\`${name}\`${required.includes(name) ? '' : '?'}: ${typeText(field)}`)
    .join('; ')

function numberText({ minimum, maximum, exclusiveMinimum }: Schema, type: string): string {
  const word = type === 'integer' ? 'whole number' : 'number'
  if (exclusiveMinimum !== undefined) return `${word} above ${exclusiveMinimum}${upTo(maximum)}`
  // zod says the range of safe integers where nothing else is said.
  const least = minimum !== undefined && minimum > Number.MIN_SAFE_INTEGER ? minimum : undefined
  const most = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER ? maximum : undefined
  if (least !== undefined && most !== undefined) return `${word} ${least}–${most}`
  return least === undefined ? `${word}${upTo(most)}` : `${word} from ${least}`
}

const upTo = (most: number | undefined): string => (most === undefined ? '' : ` up to ${most}`)

function bounds(least: number | undefined, most: number | undefined): string {
  if (least === undefined && most === undefined) return ''
  return most === undefined ? `(${least}–)` : `(${least ?? 0}–${most})`
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [lineOf(head), `|${head.map(() => '---|').join('')}`, ...rows.map(lineOf)].join('\n')

const lineOf = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
