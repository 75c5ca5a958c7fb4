import tseslint from "typescript-eslint";

const COINS = "Coins come from a BitSource.";
// Names that say that somebody said, gave or found a thing, and not what it is.
const PARTICIPLES =
  "asked found given heard held known one read said seen shown told written".split(" ");

export default tseslint.config(
  { ignores: ["dist/", "eslint.config.js", "bundle.js"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      "id-denylist": ["error", ...PARTICIPLES],
      "no-restricted-properties": ["error", { object: "Math", property: "random", message: COINS }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
  {
    // node:test gives promises that its runner waits for.
    files: ["tests/**"],
    rules: { "@typescript-eslint/no-floating-promises": "off" },
  },
);
