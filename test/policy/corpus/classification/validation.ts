// Data that does not fit: Zod for real, other schema libraries as they throw.
import { z } from 'zod'
import { caught, type Family, like, shape } from './shape.js'

const User = z.object({ name: z.string().min(2), age: z.number().int(), tags: z.array(z.string()) })

export const validation: Family = {
  family: 'validation',
  shapes: [
    shape('Zod: a missing field', 'validation', () => caught(() => User.parse({}))),
    shape('Zod: a wrong type, asynchronously', 'validation', () =>
      caught(() => User.parseAsync({ name: 7, age: 'x', tags: 1 })),
    ),
    shape('Zod: a refinement that says "timeout"', 'validation', () =>
      caught(() =>
        z
          .string()
          .refine(() => false, 'timeout must be shorter, try again')
          .parse('x'),
      ),
    ),
    shape('Zod: a union', 'validation', () => caught(() => z.union([z.string(), z.number()]).parse(null))),
    shape('Zod: as the cause of something else', 'validation', () =>
      caught(async () => {
        throw new Error('cannot load settings', { cause: await caught(() => User.parse(null)) })
      }),
    ),
    shape('Zod 3: name and issues', 'validation', () =>
      like('ZodError', '[\n  {\n    "code": "invalid_type"\n  }\n]', { issues: [{ code: 'invalid_type', path: [] }] }),
    ),
    shape('Valibot', 'validation', () =>
      like('ValiError', 'Expected string but received 7', { issues: [{ kind: 'schema', type: 'string' }] }),
    ),
    shape('ArkType', 'validation', () => like('TraversalError', 'name must be a string (was a number)')),
    shape('Joi', 'validation', () =>
      like('ValidationError', '"name" is required', { _original: {}, details: [{ type: 'any.required' }] }),
    ),
    shape('Yup', 'validation', () =>
      like('ValidationError', 'name is a required field', { inner: [], errors: ['name is a required field'] }),
    ),
    shape('Ajv', 'validation', () =>
      like('Error', 'validation failed', {
        errors: [{ keyword: 'required', message: "must have required property 'a'" }],
        validation: true,
        ajv: true,
      }),
    ),
    shape('class-validator: an array', 'validation', () => [
      { target: {}, property: 'name', constraints: { isString: 'name must be a string' }, children: [] },
    ]),
    shape('Standard Schema', 'validation', () =>
      like('SchemaError', 'The value does not fit', { issues: [{ message: 'Expected string' }] }),
    ),
    shape('GraphQL: a variable', 'validation', () =>
      like('GraphQLError', 'Variable "$id" of required type "ID!" was not provided.', {
        extensions: { code: 'BAD_USER_INPUT' },
      }),
    ),
  ],
}
