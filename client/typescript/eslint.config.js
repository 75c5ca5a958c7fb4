import tseslint from "typescript-eslint";

const COINS = "Coins come from a BitSource.";
// Names that do not say what the variable holds.
const VAGUE = [
  ..."asked found given heard held known one own read said seen shown taken".split(" "),
  ..."things told whole written wrong".split(" "),
];

export default tseslint.config(
  { ignores: ["dist/", "eslint.config.js", "bundle.js"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      "id-denylist": ["error", ...VAGUE],
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
