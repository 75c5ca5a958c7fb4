/** Converts values of other types to plain ones. As client/hubbub/catalog/plain_python_value.py. */

/** A bigint as a number; any other value unchanged. */
export function plain(value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}
