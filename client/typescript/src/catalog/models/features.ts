/** Features of a person as columns in [0, 1]. As client/hubbub/catalog/models/model_features.py. */
import { ValueOutOfDomain } from "../../errors.js";
import { listed, number, text } from "../json.js";
import { plain } from "../plain_value.js";

const MAX_SHOWN = 10;

/**
 * One feature. A range is one column; numbers outside are clipped to its ends. Bands and listed
 * texts have one column each, of which one is 1.
 */
export interface Feature {
  readonly name: string;
  /** The number of columns. */
  readonly columns: number;
  /**
   * The columns of a value, and whether the value was clipped.
   *
   * @throws ValueOutOfDomain the value is not a finite number or is not listed; the message never
   * shows it.
   */
  coded(value: unknown): readonly [columns: readonly number[], clipped: boolean];
}

/** The feature of a bundle's entry. @throws TypeError the entry is not a feature. */
export function featureOf(value: unknown): Feature {
  const [name, options, ...extraFields] = listed(value);
  const parts = listed(options);
  if (parts.length < 2 || extraFields.length)
    throw new TypeError("a feature has too few or too many fields");
  if (parts.some((part) => part === "") || new Set(parts).size < parts.length)
    throw new TypeError("a value of a feature is repeated or empty");
  return typeof parts[0] === "string"
    ? ofTexts(text(name), parts.map(text))
    : ofNumbers(text(name), parts.map(number));
}

function ofTexts(name: string, values: readonly string[]): Feature {
  return {
    ...{ name, columns: values.length },
    coded(value) {
      if (!values.includes(value as string)) {
        const examples = values.slice(0, MAX_SHOWN).map((value) => `"${value}"`);
        const hiddenCount = values.length - MAX_SHOWN;
        throw new ValueOutOfDomain(
          `feature "${name}": the value is not one of the ${values.length} listed values: ` +
            examples.join(", ") +
            (hiddenCount > 0 ? ` and ${hiddenCount} more` : ""),
        );
      }
      return [values.map((text) => Number(text === value)), false];
    },
  };
}

function ofNumbers(name: string, ends: readonly number[]): Feature {
  if (ends.some((end, index) => !(end > (ends[index - 1] ?? -Infinity)))) {
    throw new TypeError("the ends of a feature do not ascend");
  }
  const [lowEnd = 0, secondEnd = 0] = ends;
  const highEnd = ends[ends.length - 1] ?? 0;
  const columns = ends.length === 2 ? 1 : ends.length - 1;
  return {
    ...{ name, columns },
    coded(value) {
      const featureNumber = typeof value === "boolean" ? Number(value) : plain(value);
      if (typeof featureNumber !== "number" || !Number.isFinite(featureNumber)) {
        throw new ValueOutOfDomain(`feature "${name}": the value is not a finite number`);
      }
      const clipped = Math.min(Math.max(featureNumber, lowEnd), highEnd);
      const isClipped = clipped !== featureNumber;
      if (columns === 1) return [[(clipped - lowEnd) / (secondEnd - lowEnd)], isClipped];
      const band = Math.max(ends.slice(0, -1).filter((end) => clipped >= end).length - 1, 0);
      return [Array.from({ length: columns }, (_, index) => Number(index === band)), isClipped];
    },
  };
}
