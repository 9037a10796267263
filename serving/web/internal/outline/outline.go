// Package outline shows an object as foldable lines of YAML, and a change as a list of changed fields.
package outline

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Line is a line of an object that is shown as a foldable YAML document.
type Line struct {
	// Depth is the indentation in steps of two spaces, including the dash of an element.
	Depth int `json:"d"`
	// Dash marks the first line of a list element.
	Dash bool `json:"l,omitempty"`
	// Key is the key as YAML. It is empty in a list of scalars.
	Key string `json:"k,omitempty"`
	// Text is the scalar as YAML. It is empty if the following lines have the value.
	Text string `json:"t,omitempty"`
	// Kind is s, n, b or z for strings, numbers, booleans and null, and c for maps, lists and multi-line
	// strings. The lines of maps, lists and multi-line strings follow with a greater depth.
	Kind string `json:"c"`
	// Fold is the number of following lines that belong to this line.
	Fold int `json:"f,omitempty"`
	// Path is the path of the value, as in a diff. Only lines with a key have a path.
	Path string `json:"p,omitempty"`
}

// maxDepth limits the depth of the outline. Deeper values are one line of JSON.
const maxDepth = 100

// leadingFields are the first top-level fields, as in kubectl's output.
var leadingFields = []string{"apiVersion", "kind", "metadata", "spec", "data", "status"}

// Lines returns the outline of an unstructured object. YAML parsers reject keys of more than 1,024
// characters, but Lines accepts them.
func Lines(object map[string]any) []Line {
	w := &lineWriter{}
	keys := slices.Sorted(maps.Keys(object))
	slices.SortStableFunc(keys, func(a, b string) int { return keyRank(a) - keyRank(b) })
	for _, key := range keys {
		w.writeEntry(0, false, "", key, object[key])
	}
	return w.lines
}

func keyRank(key string) int {
	if i := slices.Index(leadingFields, key); i >= 0 {
		return i
	}
	return len(leadingFields) - 1 // between data and status
}

type lineWriter struct{ lines []Line }

// add appends a line. It folds the lines that writeNested appends.
func (w *lineWriter) add(line Line, writeNested func()) {
	index := len(w.lines)
	w.lines = append(w.lines, line)
	if writeNested != nil {
		writeNested()
	}
	w.lines[index].Fold = len(w.lines) - index - 1
}

func (w *lineWriter) writeEntry(depth int, dash bool, path, key string, value any) {
	path = JoinPath(path, key)
	line := Line{Depth: depth, Dash: dash, Key: yamlScalar(key), Path: path}
	contentDepth := depth
	if dash {
		contentDepth++ // the dash takes the place of one step
	}
	w.writeValue(line, contentDepth, path, value)
}

// writeValue completes a line with a value. contentDepth is the depth of the lines in maps, lists and long
// strings.
func (w *lineWriter) writeValue(line Line, contentDepth int, path string, writeValue any) {
	switch value := writeValue.(type) {
	case map[string]any:
		if len(value) > 0 && contentDepth < maxDepth {
			line.Kind = "c"
			w.add(line, func() {
				for _, key := range slices.Sorted(maps.Keys(value)) {
					w.writeEntry(contentDepth+1, false, path, key, value[key])
				}
			})
			return
		}
	case []any:
		if len(value) > 0 && contentDepth < maxDepth {
			line.Kind = "c"
			w.add(line, func() {
				for i, element := range value {
					w.writeElement(contentDepth, JoinPath(path, strconv.Itoa(i)), element)
				}
			})
			return
		}
	case string:
		if block, ok := blockLines(value); ok {
			line.Kind, line.Text = "c", "|"
			if !strings.HasSuffix(value, "\n") {
				line.Text = "|-"
			}
			w.add(line, func() {
				for _, text := range block {
					w.add(Line{Depth: contentDepth + 1, Text: text, Kind: "s"}, nil)
				}
			})
			return
		}
	}
	line.Text, line.Kind = formatScalar(writeValue)
	w.add(line, nil)
}

func (w *lineWriter) writeElement(depth int, path string, value any) {
	entries, ok := value.(map[string]any)
	if !ok || len(entries) == 0 || depth >= maxDepth {
		w.writeValue(Line{Depth: depth, Dash: true, Path: path}, depth+1, path, value)
		return
	}
	start := len(w.lines)
	for i, key := range slices.Sorted(maps.Keys(entries)) {
		if i == 0 {
			w.writeEntry(depth, true, path, key, entries[key])
		} else {
			w.writeEntry(depth+1, false, path, key, entries[key])
		}
	}
	if len(entries) > 1 && w.lines[start].Kind != "c" {
		w.lines[start].Fold = len(w.lines) - start - 1
	}
}

func formatScalar(value any) (text, kind string) {
	switch value := value.(type) {
	case nil:
		return "null", "z"
	case bool:
		return strconv.FormatBool(value), "b"
	case int64:
		return strconv.FormatInt(value, 10), "n"
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1e15 {
			return strconv.FormatFloat(value, 'f', -1, 64), "n"
		}
		return strconv.FormatFloat(value, 'g', -1, 64), "n"
	case string:
		return yamlScalar(value), "s"
	}
	out, err := json.Marshal(value)
	if err != nil {
		return strconv.Quote(err.Error()), "s"
	}
	return string(out), "s"
}

// JoinPath appends a key to a path, after a dot or quoted in brackets.
func JoinPath(path, key string) string {
	for _, r := range key {
		if !(r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return path + "[" + strconv.Quote(key) + "]"
		}
	}
	if key == "" {
		return path + `[""]`
	}
	return path + "." + key
}
