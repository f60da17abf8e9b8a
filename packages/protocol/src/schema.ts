import type { Static, TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { Settings } from 'typebox/system'

/**
 * A shape of JSON: the document that describes it and the check that enforces it are one thing, so
 * that they cannot disagree. Nothing is ever coerced, filled in or stripped.
 */
export class Schema<T> {
  /** JSON Schema, draft 2020-12 (what OpenAPI 3.1 speaks). Do not change it. */
  readonly json: object
  #validator: Validator | undefined
  /** Only to make `Schema<A>` and `Schema<B>` different types. */
  declare readonly accepted: T

  private constructor(json: object) {
    this.json = json
  }

  /** The schema `type`, whose values are exactly `T`: the compiler refuses it when they are not. */
  static of<T>(): <S extends TSchema>(type: S & Agreement<Frozen<Static<S>>, T>) => Schema<T> {
    return (type) => new Schema<T>(type)
  }

  accepts(value: unknown): value is T {
    return this.#compiled().Check(value)
  }

  /** What is wrong with `value`, by field: everything, up to a bound. Empty when it is accepted. */
  faults(value: unknown): FieldFault[] {
    const validator = this.#compiled()
    if (validator.Check(value)) return []
    // TypeBox keeps this bound for the whole process; another user of it keeps theirs.
    const { maxErrors } = Settings.Get()
    Settings.Set({ maxErrors: MAX_FAULTS })
    try {
      return validator.Errors(value).flatMap((error) => faultsOf(error, value, this.json))
    } finally {
      Settings.Set({ maxErrors })
    }
  }

  /** Compiling costs a millisecond; a client never uses most schemas. */
  #compiled(): Validator {
    this.#validator ??= Compile(this.json)
    return this.#validator
  }
}

/** One thing that is wrong with a request. `field` reads `renew.0.key`; "" is the whole input. */
export interface FieldFault {
  readonly field: string
  readonly message: string
}

const MAX_FAULTS = 64
/** The caller chose it, and it is repeated in the answer and the log. */
const MAX_NAME = 64

type ValidationError = ReturnType<Validator['Errors']>[number]

function faultsOf(error: ValidationError, input: unknown, schema: unknown): FieldFault[] {
  const at = pathOf(error.instancePath)
  const fault = (message: string, ...below: string[]): FieldFault => ({
    field: [...at, ...below].join('.'),
    message,
  })
  if (error.keyword === 'required') {
    return error.params.requiredProperties.map((name) => fault('is required', name))
  }
  if (error.keyword === 'additionalProperties') {
    return error.params.additionalProperties.map((name) =>
      fault('is not a known field', name.slice(0, MAX_NAME)),
    )
  }
  if (error.keyword === 'boolean') return [] // an unknown field, which the keyword above names
  if (error.keyword === 'type') {
    return [fault(`${error.message}, got ${kindOf(valueAt(input, at))}`)]
  }
  if (error.keyword === 'minimum' || error.keyword === 'maximum') {
    const { minimum, maximum } = valueAt(schema, pathOf(error.schemaPath)) as NumberSchema
    const range = maximum === undefined ? `at least ${minimum}` : `from ${minimum} to ${maximum}`
    return [fault(`must be ${range}, got ${String(valueAt(input, at))}`)]
  }
  // A string's value is not repeated: one of them is a session's secret.
  return [fault(error.message)]
}

/** Every number of this protocol has a minimum. */
interface NumberSchema {
  readonly minimum: number
  readonly maximum?: number
}

function pathOf(pointer: string): string[] {
  return pointer.split('/').slice(1).map(unescapePointer)
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' ? String(value) : typeof value
}

function valueAt(input: unknown, at: readonly string[]): unknown {
  return at.reduce<unknown>(
    (value, name) => (value as Record<string, unknown> | undefined)?.[name],
    input,
  )
}

function unescapePointer(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** As JSON is read here: nobody writes into it. */
type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Frozen<T[Name]> }
    : T

/** `unknown` (no demand) when A and B are the same type, else `never` (no argument fits). */
type Agreement<A, B> =
  (<X>() => X extends A ? 1 : 2) extends <X>() => X extends B ? 1 : 2 ? unknown : never
