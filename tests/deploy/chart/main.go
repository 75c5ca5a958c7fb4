// Renders a chart as `helm template` does, with the engine and the functions that Helm is made of
// (text/template and sprig), for machines that have Go and no Helm:
//
//	go run main.go CHART NAME NAMESPACE < values.yaml
//
// It prints one document after the other. A value that is not there is an error, as with --strict.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

type files struct{ chart string }

// Get is `.Files.Get`: empty if there is no such file.
func (f files) Get(name string) string {
	content, _ := os.ReadFile(filepath.Join(f.chart, name))
	return string(content)
}

func merge(into, from map[string]any) map[string]any {
	for key, value := range from {
		if inner, ok := value.(map[string]any); ok {
			if old, ok := into[key].(map[string]any); ok {
				into[key] = merge(old, inner)
				continue
			}
		}
		into[key] = value
	}
	return into
}

func read(content []byte) map[string]any {
	found := map[string]any{}
	check(yaml.Unmarshal(content, &found))
	return found
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	chart, name, namespace := os.Args[1], os.Args[2], os.Args[3]
	all := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	delete(functions, "env")
	functions["include"] = func(name string, data any) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	functions["toYaml"] = func(value any) (string, error) {
		var out bytes.Buffer
		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(2)
		err := encoder.Encode(value)
		return strings.TrimSuffix(out.String(), "\n"), err
	}
	functions["required"] = func(message string, value any) (any, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	all.Funcs(functions)
	given, err := io.ReadAll(os.Stdin)
	check(err)
	defaults, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	check(err)
	about, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	check(err)
	chartFields := map[string]any{}
	for key, value := range read(about) {
		chartFields[strings.ToUpper(key[:1])+key[1:]] = value
	}
	data := map[string]any{
		"Values":  merge(read(defaults), read(given)),
		"Chart":   chartFields,
		"Release": map[string]any{"Name": name, "Namespace": namespace, "Service": "Helm"},
		"Files":   files{chart},
	}
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		check(err)
		_, err = all.New(filepath.Base(path)).Parse(string(content))
		check(err)
	}
	for _, path := range paths {
		base := filepath.Base(path)
		if strings.HasPrefix(base, "_") {
			continue
		}
		var out bytes.Buffer
		check(all.ExecuteTemplate(&out, base, data))
		if base == "NOTES.txt" {
			continue
		}
		fmt.Printf("---\n# %s\n%s\n", base, out.String())
	}
}
