package manifest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	yamlv2 "go.yaml.in/yaml/v2"
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

// parserStream reads the documents of a text as the YAML parser separates them.
func parserStream(text []byte) (all []any, err error) {
	decoder := yamlv2.NewDecoder(bytes.NewReader(text))
	for {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if value, err = (&jsonConverter{math.MaxInt}).convert(value); err != nil {
			return nil, err
		}
		data, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if string(data) == "null" {
			continue
		}
		if all, err = plainObject(all, data); err != nil {
			return nil, err
		}
	}
}

// FuzzDocumentStream compares Read with the documents that the YAML parser finds in the whole text. Read may
// report an error, but it must not lose an object.
func FuzzDocumentStream(f *testing.F) {
	var seeds []string // without errors
	for _, lineBreak := range []string{"\n", "\r\n", "\r", "\u0085", "\u2028", "\u2029"} {
		for _, separator := range []string{
			"---\n", "--- # c\n", "---\t\n", "...\n---\n", "... # c\n--- !!map\n", "---\n\ufeff",
			"...\n%YAML 1.1\n---\n", "...\n# c\n%TAG ! tag:x,1:\n--- # c\n", "--- # c\n---\n# c\n",
		} {
			text := "# c\n---\n" + aYAML + separator + bYAML + separator + aYAML
			seeds = append(seeds, strings.ReplaceAll(text, "\n", lineBreak),
				"# c"+lineBreak+"%YAML 1.1\n--- # c"+lineBreak+text, text+"\ufeff"+text)
		}
	}
	padding := strings.Repeat("# "+strings.Repeat("x", 1<<10)+"\n", maxWhole>>10)
	kinds := "apiVersion: v1\nkind: List\n"
	for _, items := range []string{
		item(aYAML) + item(bYAML), "  - {kind: A, apiVersion: v1}\n# c\n\n  -\n    kind: B\n    apiVersion: v1\n",
		"- apiVersion: v1\n  kind: A\n  t: |\n    - x\n    items:\n  u:\n  - y\n# c\n-\tkind: B\n  apiVersion: v1\n", "", "[]\n",
	} {
		seeds = append(seeds, kinds+"items:\n"+items, "items: # c\n\n"+items+kinds, "items:\n"+items+kinds+"--- # c\n"+aYAML)
	}
	for _, text := range append(seeds, "{kind: A, apiVersion: v1} \r--- \"\"\n", aYAML+"\ufeff---\n"+aYAML,
		kinds+"items:\n- kind: A\n  apiVersion: v1\n  t: 'x\n- y'\n- &x {kind: B, apiVersion: v1}\n- *x\n") {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, err := parserStream(data)
		if err != nil {
			return
		}
		texts := []string{string(data)}
		if bytes.Contains(data, []byte("items:")) {
			texts = append(texts, padding+string(data)) // which is read item by item
		}
		for _, text := range texts {
			var got []any
			var failure error
			err = Read(t.Context(), strings.NewReader(text), func(e Entry) bool {
				var object any
				if failure = e.Err; failure == nil {
					failure = json.Unmarshal(e.Data, &object)
				} else if note := new(Note); errors.As(e.Err, &note) { // an empty list
					failure = nil
					return true
				}
				got = append(got, object)
				return failure == nil
			})
			if err != nil || failure != nil && !slices.Contains(seeds, string(data)) {
				continue
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects of %d bytes that end with %q (-parser +ours):\n%s", len(text), data, diff)
			}
		}
	})
}

// TestEncodings verifies that UTF-8 and UTF-16 give the same objects, also of concatenated files.
func TestEncodings(t *testing.T) {
	file := strings.Replace(aYAML, ": a\n", ": \"\U0001F600\ufeff\"\n", 1)
	for name, text := range map[string]string{
		"YAML": "\ufeff" + file + "\ufeff---\r\n" + bYAML + "---\n\ufeff# c\n" + aYAML,
		"JSON": "\ufeff" + strings.Replace(aJSON, `"a"`, "\"\U0001F600\ufeff\"", 1) + "\ufeff" + bJSON + "\r\n\ufeff\n" + aJSON,
	} {
		units := utf16.Encode([]rune(text))
		for encoding, data := range map[string][]byte{
			"UTF-8": []byte(text), "UTF-16LE": encodeUnits(binary.LittleEndian, units),
			"UTF-16BE": encodeUnits(binary.BigEndian, units),
		} {
			for read, r := range map[string]io.Reader{"whole": bytes.NewReader(data),
				"byte by byte": iotest.OneByteReader(bytes.NewReader(data))} {
				got := describeEntries(t, r)
				if len(got) != 3 || !strings.HasSuffix(got[0], "v1 A \U0001F600\ufeff") ||
					!strings.HasSuffix(got[1], "v1 B b") || !strings.HasSuffix(got[2], "v1 A a") {
					t.Errorf("%s, %s, %s: %q, want three objects", name, encoding, read, got)
				}
			}
		}
	}
	for name, data := range map[string][]byte{
		"half a unit":     append(encodeUnits(binary.LittleEndian, utf16.Encode([]rune("\ufeff"+aYAML))), 'x'),
		"high surrogate":  encodeUnits(binary.BigEndian, []uint16{0xfeff, 'a', 0xd800, 'b'}),
		"low surrogate":   encodeUnits(binary.BigEndian, []uint16{0xfeff, 'a', 0xdc00}),
		"ends in a pair":  encodeUnits(binary.BigEndian, []uint16{0xfeff, 'a', 0xd800}),
		"utf-8 is joined": append(encodeUnits(binary.BigEndian, []uint16{0xfeff}), aYAML...),
	} {
		if got := describeEntries(t, bytes.NewReader(data)); len(got) == 0 ||
			!strings.Contains(got[len(got)-1], "failed: ") && !strings.Contains(got[len(got)-1], "error ") {
			t.Errorf("%s: %q, want an error", name, got)
		}
	}
}

func encodeUnits(order binary.AppendByteOrder, units []uint16) (data []byte) {
	for _, unit := range units {
		data = order.AppendUint16(data, unit)
	}
	return data
}

// TestMergeKeys compares documents with merge keys with sigs.k8s.io/yaml, which kubectl uses.
func TestMergeKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	keys := []string{"a", "b", "\"c d\"", "yes", "1", "0x1", "1.5", "\"<<\""}
	for range 3000 {
		var text strings.Builder
		text.WriteString("apiVersion: v1\nkind: A\n")
		anchors, duplicate := 0, false
		for i := range 1 + random.IntN(4) {
			fmt.Fprintf(&text, "m%d: &x%d\n", i, i)
			used := map[string]bool{}
			for range random.IntN(5) {
				value := fmt.Sprint(random.IntN(100))
				switch key := keys[random.IntN(len(keys))]; {
				case anchors > 0 && random.IntN(3) == 0:
					fmt.Fprintf(&text, "  <<: *x%d\n", random.IntN(anchors))
				case anchors > 0 && random.IntN(8) == 0:
					fmt.Fprintf(&text, "  <<: [*x%d, {a: %s}, *x%d]\n", random.IntN(anchors), value, random.IntN(anchors))
				default:
					fmt.Fprintf(&text, "  %s: %s\n", key, value)
					key = strings.Replace(key, "0x1", "1", 1)
					duplicate, used[key] = duplicate || used[key], true
				}
			}
			text.WriteString("  last: true\n")
			anchors++
		}
		want, err := yaml.YAMLToJSON([]byte(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeYAML([]byte(text.String()), 1, true)
		switch {
		case duplicate && err == nil:
			t.Errorf("a key is twice in\n%s, but the result is %s", text.String(), got)
		case !duplicate && (err != nil || !bytes.Equal(got, want)):
			t.Errorf("the document\n%sgives %s (%v), and sigs.k8s.io/yaml gives %s", text.String(), got, err, want)
		}
	}
	for text, want := range map[string]string{
		"a: &a {x: 1}\nb:\n  <<: *a\n  yes: 2\n  on: 3\n": "line 5: key true already set in map",
		"0: a\n\"0\": b\n": `key "0" already set in map`,
		"a: &a {x: 1}\nb: {<<: *a, x: 2, c: {d: 1, d: 2}}": `line 2: key "d" already set in map`,
	} {
		if _, err := yamlToJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}
