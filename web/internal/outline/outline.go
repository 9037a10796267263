// Package outline writes an object as the lines of a YAML document that can be folded.
package outline

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Line is a line of the document.
type Line struct {
	// Depth is how far the line is indented, in steps of two blanks. The dash of an element counts with its
	// depth.
	Depth int `json:"d"`
	// Dash is set for the first line of an element of a list.
	Dash bool `json:"l,omitempty"`
	// Key is the key with which the line begins, as YAML has it; empty in a list of scalars.
	Key string `json:"k,omitempty"`
	// Text is the scalar, as YAML has it; empty where lines below have the value.
	Text string `json:"t,omitempty"`
	// Kind is s, n, b or z for texts, numbers, booleans and null, and c for a map, a list or a text over
	// several lines, whose lines follow deeper.
	Kind string `json:"c"`
	// Fold is how many lines follow that belong to this one.
	Fold int `json:"f,omitempty"`
	// Path is where the value is, as in a diff; only lines with a key have one.
	Path string `json:"p,omitempty"`
}

// MaxDepth is how deep values may be nested to be laid out; deeper ones are one line of JSON.
const MaxDepth = 100

// first are the fields that come before the others at the top, as in kubectl's output.
var first = []string{"apiVersion", "kind", "metadata", "spec", "data", "status"}

// Lines lays an object out. The values are what decoding JSON gives for unstructured objects. A key of more
// than a thousand characters is written as others are, although YAML reads none of that length.
func Lines(object map[string]any) []Line {
	w := &writer{}
	keys := slices.Sorted(maps.Keys(object))
	slices.SortStableFunc(keys, func(a, b string) int { return rank(a) - rank(b) })
	for _, key := range keys {
		w.entry(0, false, "", key, object[key])
	}
	return w.lines
}

func rank(key string) int {
	if i := slices.Index(first, key); i >= 0 {
		return i
	}
	return len(first) - 1 // with the status last but for what follows it in the alphabet
}

type writer struct{ lines []Line }

// add appends a line and whatever below writes as lines that belong to it.
func (w *writer) add(line Line, below func()) {
	at := len(w.lines)
	w.lines = append(w.lines, line)
	if below != nil {
		below()
	}
	w.lines[at].Fold = len(w.lines) - at - 1
}

func (w *writer) entry(depth int, dash bool, path, key string, value any) {
	path = Join(path, key)
	line := Line{Depth: depth, Dash: dash, Key: Scalar(key), Path: path}
	inner := depth
	if dash {
		inner++ // the dash takes the place of one step
	}
	w.value(line, inner, path, value)
}

// value writes a value behind what the line begins with; what is in it comes at a depth below inner.
func (w *writer) value(line Line, inner int, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 && inner < MaxDepth {
			line.Kind = "c"
			w.add(line, func() {
				for _, key := range slices.Sorted(maps.Keys(value)) {
					w.entry(inner+1, false, path, key, value[key])
				}
			})
			return
		}
	case []any:
		if len(value) > 0 && inner < MaxDepth {
			line.Kind = "c"
			w.add(line, func() {
				for i, element := range value {
					w.element(inner, Join(path, strconv.Itoa(i)), element)
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
					w.add(Line{Depth: inner + 1, Text: text, Kind: "s"}, nil)
				}
			})
			return
		}
	}
	line.Text, line.Kind = scalar(value)
	w.add(line, nil)
}

// element writes an element of a list, whose dash is at depth.
func (w *writer) element(depth int, path string, value any) {
	entries, ok := value.(map[string]any)
	if !ok || len(entries) == 0 || depth >= MaxDepth {
		w.value(Line{Depth: depth, Dash: true, Path: path}, depth+1, path, value)
		return
	}
	start := len(w.lines)
	for i, key := range slices.Sorted(maps.Keys(entries)) {
		if i == 0 {
			w.entry(depth, true, path, key, entries[key])
		} else {
			w.entry(depth+1, false, path, key, entries[key])
		}
	}
	if len(entries) > 1 && w.lines[start].Kind != "c" {
		w.lines[start].Fold = len(w.lines) - start - 1
	}
}

func scalar(value any) (text, kind string) {
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
		return Scalar(value), "s"
	}
	out, err := json.Marshal(value)
	if err != nil {
		return strconv.Quote(err.Error()), "s"
	}
	return string(out), "s"
}

// Join appends a key to a path: with a dot, or in brackets and quotes where the key could be mistaken.
func Join(path, key string) string {
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
