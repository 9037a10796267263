package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// errNotComparable is returned by the plain readers for texts that Read may treat differently.
var errNotComparable = errors.New("the libraries and Read may differ")

// plainYAML reads a YAML stream document by document with the libraries.
func plainYAML(text []byte) ([]any, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var all []any
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, err
		}
		if all, err = plainObject(all, data); err != nil {
			return nil, err
		}
	}
}

// plainJSON reads a stream of JSON values with the libraries.
func plainJSON(text []byte) ([]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var all []any
	for {
		var data json.RawMessage
		if err := decoder.Decode(&data); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if duplicates, err := kjson.UnmarshalStrict(data, new(any),
			kjson.DisallowDuplicateFields); len(duplicates) > 0 || err != nil {
			return nil, errNotComparable
		}
		var err error
		if all, err = plainObject(all, data); err != nil {
			return nil, err
		}
	}
}

// plainObject appends an object, or the items of a list.
func plainObject(all []any, data []byte) ([]any, error) {
	var object map[string]any
	if json.Unmarshal(data, &object) != nil || object == nil {
		return nil, errNotComparable
	}
	for name := range object {
		if strings.EqualFold(name, "kind") && name != "kind" || strings.EqualFold(name, "apiVersion") &&
			name != "apiVersion" {
			return nil, errNotComparable
		}
	}
	kind, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	if kind == "" || version == "" {
		return nil, errNotComparable
	}
	items, has := object["items"]
	if !has || !isList(kind) {
		if has {
			return nil, errNotComparable
		}
		return append(all, any(object)), nil
	}
	list, ok := items.([]any)
	if !ok {
		return nil, errNotComparable
	}
	for _, item := range list {
		one, ok := item.(map[string]any)
		if !ok || one["kind"] == nil || one["apiVersion"] == nil {
			return nil, errNotComparable
		}
		if own, ok := one["kind"].(string); !ok || isList(own) {
			return nil, errNotComparable
		}
		all = append(all, any(one))
	}
	return all, nil
}

// FuzzPlainReaders compares Read with the libraries.
func FuzzPlainReaders(f *testing.F) {
	for _, text := range []string{
		aYAML + "---\n" + bYAML, "apiVersion: v1\nitems:\n" + item(aYAML) + item(bYAML) +
			"kind: List\n", aJSON + "\n" + aJSON,
		`{"apiVersion":"v1","items":[` + aJSON +
			`],"kind":"List"}`, "apiVersion: v1\nkind: A\na: |\n  items:\n  - b\n  ---\nb: 1e3\n",
		"apiVersion: v1\nkind: A\na: \"x\n\n  items:\n\n  - y\"\n",
		"apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: B\n    t: >-\n      a\n\n      - b\n\n  # c\n  - {kind: C, apiVersion: v1}\n",
		"# c\n--- # d\napiVersion: v1\nkind: A\n...\n",
		"apiVersion: v1\r\nkind: List\r\nitems:\r\n- apiVersion: v1\r\n  kind: B\r\n",
		"apiVersion: v1\nkind: List\nitems: &x\n- apiVersion: v1\n  kind: B\nmore: *x\n",
		"apiVersion: v1\nkind: A\nn: 9007199254740993\nf: 1.0\n? k\n: v\n", "{kind: A, apiVersion: v1}\n",
		"kind: A\napiVersion: v1\ns: 'a\n---\nb'\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = append(bytes.Clone(data), '\n') // as the libraries do for the last line
		plain := plainYAML
		if isJSON(data) {
			plain = plainJSON
		}
		want, err := plain(data)
		if err != nil {
			return
		}
		var got []any
		err = Read(t.Context(), bytes.NewReader(data), func(e Entry) bool {
			if e.Err != nil {
				t.Errorf("line %d, document %d, item %d: %v", e.Line, e.Document, e.Item, e.Err)
				return false
			}
			var object any
			if err := json.Unmarshal(e.Data, &object); err != nil {
				t.Errorf("the reader returned invalid JSON %s: %v", e.Data, err)
			}
			got = append(got, object)
			return true
		})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			for range 100 {
				// If keys are equal only in JSON, such as 0 and "0", the library uses any of them.
				if again, err := plain(data); err != nil || !reflect.DeepEqual(again, want) {
					return
				}
			}
			t.Errorf("%v, objects of %q (-libraries +ours):\n%s", err, data, diff)
		}
	})
}

// isJSON reports whether Read treats a text as JSON.
func isJSON(data []byte) bool {
	json, err := (&documentReader{in: bufio.NewReaderSize(bytes.NewReader(data), peekSize)}).skipToDocument()
	return json && err == nil
}
