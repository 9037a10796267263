package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// describeEntries reads a text and describes each entry as "line document/item: name" or with its error.
func describeEntries(t testing.TB, r io.Reader) []string {
	t.Helper()
	var got []string
	if err := Read(t.Context(), r, func(e Entry) bool {
		where := fmt.Sprint(e.Line, " ", e.Document, "/", e.Item, ": ")
		if e.Err != nil {
			got = append(got, where+"error "+e.Err.Error())
			return true
		}
		var object map[string]any
		if err := json.Unmarshal(e.Data, &object); err != nil {
			t.Errorf("the reader returned invalid JSON: %v in %s", err, e.Data)
		}
		name, _, _ := unstructured.NestedString(object, "metadata", "name")
		text := where + e.APIVersion + " " + e.Kind + " " + name
		if items, ok := object["items"].([]any); ok {
			text += fmt.Sprint(items)
		}
		got = append(got, text)
		return true
	}); err != nil {
		got = append(got, "failed: "+err.Error())
	}
	return got
}

const (
	aYAML = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n"
	bYAML = "apiVersion: v1\nkind: B\nmetadata:\n  name: b\n"
	aJSON = `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`
	bJSON = `{"apiVersion":"v1","kind":"B","metadata":{"name":"b"}}`
)

func item(text string) string {
	return "- " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

func TestEntries(t *testing.T) {
	const tail = "kind: List\nmetadata:\n  resourceVersion: \"\"\n"
	indented := "  " + strings.ReplaceAll(strings.TrimSuffix(item(aYAML)+item(bYAML), "\n"),
		"\n", "\n  ") + "\n"
	tests := map[string]struct {
		text string
		want []string
	}{
		"nothing":       {"", []string{"0 0/0: error " + errEmpty.Error()}},
		"only a mark":   {"\ufeff \r\n\n", []string{"0 0/0: error " + errEmpty.Error()}},
		"null":          {"null\n", []string{"1 1/0: error not a Kubernetes object"}},
		"nulls":         {aYAML + "---\nnull\n--- ~\n", []string{"1 1/0: v1 A a"}},
		"no fields":     {"{}", []string{"1 1/0: error not a Kubernetes object: it has no apiVersion or no kind"}},
		"separator":     {"---\n", nil},
		"comments":      {"# only\n---\n# comments\n", nil},
		"one":           {aYAML, []string{"1 1/0: v1 A a"}},
		"two":           {aYAML + "---\n" + bYAML, []string{"1 1/0: v1 A a", "6 2/0: v1 B b"}},
		"comment first": {"# hello\n\n" + aYAML, []string{"3 1/0: v1 A a"}},
		"separators": {"---\n---\n" + aYAML + "...\n---\n\n---\n" + bYAML + "---\n",
			[]string{"3 1/0: v1 A a", "11 2/0: v1 B b"}},
		"windows": {strings.ReplaceAll(aYAML+"---\n"+bYAML, "\n", "\r\n"),
			[]string{"1 1/0: v1 A a", "6 2/0: v1 B b"}},
		"no line break": {strings.TrimSuffix(aYAML, "\n"), []string{"1 1/0: v1 A a"}},
		"flow":          {"{apiVersion: v1, kind: A, metadata: {name: a}}", []string{"1 1/0: v1 A a"}},
		"list of kubectl": {"apiVersion: v1\nitems:\n" + item(aYAML) + item(bYAML) + tail,
			[]string{"3 1/1: v1 A a", "7 1/2: v1 B b"}},
		"kind first": {"kind: List\napiVersion: v1\nitems:\n" + item(aYAML), []string{"4 1/1: v1 A a"}},
		"indented items": {"apiVersion: v1\nitems:\n" + indented + tail,
			[]string{"3 1/1: v1 A a", "7 1/2: v1 B b"}},
		"comments in items": {"apiVersion: v1\nitems: # here\n" + item(aYAML) + "\n# more\n" + item(bYAML) +
			"# end\n" + tail, []string{"3 1/1: v1 A a", "9 1/2: v1 B b"}},
		"dash in a line": {"apiVersion: v1\nitems:\n-\n  apiVersion: v1\n  kind: A\n  metadata: {name: a}\n" +
			item(bYAML) + tail, []string{"4 1/1: v1 A a", "7 1/2: v1 B b"}},
		"flow items": {"apiVersion: v1\nkind: List\nitems: [" + aJSON + ", " + bJSON + "]\n",
			[]string{"3 1/1: v1 A a", "3 1/2: v1 B b"}},
		"flow items first": {"items: [" + aJSON + "]\napiVersion: v1\nkind: List\n",
			[]string{"1 1/1: v1 A a"}},
		"lists in lists": {"apiVersion: v1\nkind: List\nitems:\n" +
			item("apiVersion: v1\nkind: List\nitems:\n"+item(aYAML)+
				item("apiVersion: v1\nkind: BList\nitems:\n- metadata: {name: b}\n")) +
			item(bYAML), []string{"4 1/1: v1 A a", "4 1/1: v1 B b", "15 1/2: v1 B b"}},
		"JSON: lists inside": {`{"items":[{"items":[` + aJSON + `],"kind":"List","apiVersion":"v1"},` +
			bJSON + `],"kind":"List","apiVersion":"v1"}`, []string{"1 1/1: v1 A a", "1 1/2: v1 B b"}},
		"too many lists": {strings.Repeat(`{"apiVersion":"v1","kind":"List","items":[`, 12) + aJSON +
			strings.Repeat("]}", 12), []string{"1 1/1: error more than 8 nested lists"}},
		"empty list":                  {"apiVersion: v1\nkind: List\nitems: []\n", nil},
		"null list":                   {"apiVersion: v1\nkind: List\nitems:\nmetadata: {}\n", nil},
		"a list cut before its items": {"apiVersion: v1\nkind: List\nitems:\n", []string{"1 1/0: error " + ErrTruncated.Error()}},
		"an empty page": {`{"kind":"AList","apiVersion":"v1","items":[],"metadata":{"remainingItemCount":3}}`,
			[]string{"1 1/0: error " + errPage.Error()}},
		"typed list": {
			"apiVersion: g/v1\nitems:\n- metadata:\n    name: a\n- metadata: {name: b}\n  kind: B\nkind: AList\n", []string{"3 1/1: g/v1 A a", "5 1/2: g/v1 B b"}},
		"list then document": {"apiVersion: v1\nitems:\n" + item(aYAML) + tail + "---\n" + bYAML,
			[]string{"3 1/1: v1 A a", "11 2/0: v1 B b"}},
		"items of an object": {"apiVersion: g/v1\nitems:\n- x\n- z\nkind: A\nmetadata: {name: a}\n",
			[]string{"1 1/0: g/v1 A a[x z]"}},
		"items of no list": {"apiVersion: v1\nitems:\n" + item(aYAML) + "kind: Other\n",
			[]string{"1 1/0: v1 Other [map[apiVersion:v1 kind:A metadata:map[name:a]]]"}},
		"items with no kind": {"apiVersion: v1\nkind: List\nitems:\n- metadata: {name: a}\n- 7\n", []string{
			"4 1/1: error " + errForeignItem.Error(), "5 1/2: error " + errForeignItem.Error()}},
		"a Status": {`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no"}`,
			[]string{"1 1/0: error " + errFailedRequest.Error() + ": no"}},
		"a list without items": {`{"kind":"PodList","apiVersion":"v1"}`, []string{"1 1/0: error " + errNoItems.Error()}},
		"an object like a list": {`{"kind":"AllowList","apiVersion":"g/v1","metadata":{"name":"a"}}`,
			[]string{"1 1/0: g/v1 AllowList a"}},
		"a page in a list": {`{"kind":"List","apiVersion":"v1","items":[{"kind":"AList","apiVersion":"v1",` +
			`"metadata":{"continue":"z"},"items":[` + aJSON + `]}]}`, []string{"1 1/1: v1 A a", "1 1/1: error " + errPage.Error()}},
		"items twice": {"apiVersion: v1\nkind: List\nitems:\n" + item(aYAML) + "items: []\n",
			[]string{`8 1/0: error not valid YAML: key "items" already set in map`}},
		"broken": {aYAML + "---\na: [\n---\n" + bYAML, []string{"1 1/0: v1 A a",
			"6 2/0: error not valid YAML: did not find expected node content", "8 3/0: v1 B b"}},
		"twice a key": {aYAML + "kind: C\n",
			[]string{"5 1/0: error not valid YAML: key \"kind\" already set in map"}},
		"broken item": {"apiVersion: v1\nitems:\n" + item(aYAML) + "- a: b\n  c: d: e\n" + item(bYAML) +
			tail, []string{
			"8 1/0: error not valid YAML: mapping values are not allowed in this context"}},
		"broken tail": {"apiVersion: v1\nitems:\n" + item(aYAML) + "kind: List\nmetadata: a: b\n",
			[]string{"8 1/0: error not valid YAML: mapping values are not allowed in this context"}},
		"no object": {"- 1\n- 2\n---\nhello\n", []string{"1 1/0: error not a Kubernetes object",
			"4 2/0: error not a Kubernetes object"}},
		"values": {"a: b\n",
			[]string{"1 1/0: error not a Kubernetes object: it has no apiVersion or no kind"}},
		"json":           {aJSON, []string{"1 1/0: v1 A a"}},
		"json lines":     {aJSON + "\n" + bJSON + "\n", []string{"1 1/0: v1 A a", "2 2/0: v1 B b"}},
		"json, no break": {aJSON + bJSON, []string{"1 1/0: v1 A a", "1 2/0: v1 B b"}},
		"json and yaml":  {"\n" + aJSON + "\n---\n" + bYAML, []string{"2 1/0: v1 A a", "4 2/0: v1 B b"}},
		"json list": {"{\n\"apiVersion\": \"v1\",\n\"items\": [\n" + aJSON + ",\n" + bJSON +
			"\n], \"kind\": \"List\"}", []string{"4 1/1: v1 A a", "5 1/2: v1 B b"}},
		"json raw list": {
			`{"kind":"AList","apiVersion":"g/v1","metadata":{},"items":[{"metadata":{"name":"a"}}]}`,
			[]string{"1 1/1: g/v1 A a"}},
		"json page": {`{"kind":"AList","apiVersion":"g/v1","metadata":{"continue":"x"},"items":[{"metadata":{"name":"a"}}]}`,
			[]string{"1 1/1: g/v1 A a", "1 1/0: error " + errPage.Error()}},
		"json null list": {`{"kind":"AList","apiVersion":"g/v1","items":null}`, nil},
		"json no array": {`{"kind":"AList","apiVersion":"g/v1","items":"x"}`,
			[]string{"1 1/0: error items is not an array"}},
		"json array": {"[" + aJSON + ",\n" + bJSON + "]\n" + aJSON, []string{"1 1/1: v1 A a", "2 1/2: v1 B b", "3 2/0: v1 A a"}},
		"json array and others": {"[\n" + aJSON + ",\n7, {}]", []string{"2 1/1: v1 A a",
			"1 1/0: error " + errForeignItem.Error()}},
		"json arrays of others": {"[{}]\n[]\n[\"a\"]", []string{"1 1/0: error not a Kubernetes object",
			"3 3/0: error not a Kubernetes object"}},
		"array of lists": {"[{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[" + aJSON + "]}]", []string{"1 1/1: v1 A a"}},
		"yaml array":     {"# c\n" + item(aYAML) + item(bYAML) + "---\n" + aYAML, []string{"2 1/1: v1 A a", "6 1/2: v1 B b", "11 2/0: v1 A a"}},
		"flow array":     {"[{apiVersion: v1, kind: A, metadata: {name: a}}]", []string{"1 1/1: v1 A a"}},
		"list with no kind": {"metadata: {}\nitems:\n" + item(aYAML) + item(bYAML),
			[]string{"3 1/1: v1 A a", "7 1/2: v1 B b"}},
		"json list with no kind": {`{"items":[` + aJSON + "," + bJSON + `]}`, []string{"1 1/1: v1 A a", "1 1/2: v1 B b"}},
		"json broken": {aJSON + "\n{\"a\":\n  !}\n", []string{"1 1/0: v1 A a",
			"3 2/0: error not valid JSON: invalid character '!' looking for beginning of value"}},
		"json mark": {"\ufeff" + aJSON, []string{"1 1/0: v1 A a"}},

		"separators with comments": {aYAML + "---  # b\n" + bYAML + "---\t# a\n" + aYAML +
			"... # end\n---\t\n" + bYAML,
			[]string{"1 1/0: v1 A a", "6 2/0: v1 B b", "11 3/0: v1 A a", "17 4/0: v1 B b"}},
		"separator and object": {aYAML + "--- {apiVersion: v1, kind: B, metadata: {name: b}}\n---\n" +
			aYAML, []string{"1 1/0: v1 A a", "5 2/0: v1 B b", "7 3/0: v1 A a"}},
		"separator with object": {"--- {apiVersion: v1, kind: B, metadata: {name: b}}",
			[]string{"1 1/0: v1 B b"}},
		"separator and tag": {"--- !!map\n" + aYAML + "--- &b\n" + bYAML,
			[]string{"1 1/0: v1 A a", "6 2/0: v1 B b"}},
		"separator and text": {aYAML + "--- |\n  text\n---\n" + bYAML,
			[]string{"1 1/0: v1 A a", "5 2/0: error not a Kubernetes object", "8 3/0: v1 B b"}},
		"separator behind a list": {"apiVersion: v1\nkind: List\nitems:\n" + item(aYAML) +
			"--- {apiVersion: v1, kind: B, metadata: {name: b}}\n", []string{"4 1/1: v1 A a",
			"8 2/0: v1 B b"}},
		"no separator": {"apiVersion: v1\nkind: A\nmetadata: {name: a}\n---- : x\n",
			[]string{"1 1/0: v1 A a"}},
		"directives": {"%YAML 1.2\n%TAG ! tag:example.com,2000:\n---\n" + aYAML +
			"...\n%YAML 1.1\n---\n" + bYAML, []string{"4 1/0: v1 A a", "11 2/0: v1 B b"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, describeEntries(t, strings.NewReader(tt.text))); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
			// The result does not depend on how the text is split.
			if diff := cmp.Diff(tt.want,
				describeEntries(t, iotest.OneByteReader(strings.NewReader(tt.text)))); diff != "" {
				t.Errorf("byte by byte (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCut verifies that a text that ends within a document gives the objects before its end and ErrTruncated.
func TestCut(t *testing.T) {
	list := "apiVersion: v1\nitems:\n" + item(aYAML) + item(bYAML) + "kind: List\n"
	for name, tt := range map[string]struct {
		text, aEnd, bEnd string // what ends A and B
	}{
		"YAML":       {list, "a\n-", "b\nk"},
		"large YAML": {"#" + strings.Repeat("c", maxWhole) + "\n" + list, "a\n-", "b\nk"},
		"flow":       {"kind: List\napiVersion: v1\nitems: [\n" + aJSON + "," + bJSON + "]\n", "]", "]"},
		"JSON":       {`{"apiVersion":"v1","items":[` + aJSON + "," + bJSON + `],"kind":"List"}`, `"a"}}`, `"b"}}`},
		"JSON lines": {aJSON + "\n" + bJSON, `"a"}}`, `"b"}}`},
	} {
		step := 1 + len(tt.text)/(maxWhole/20)
		for n := len(tt.text) - len("st\n"); n > strings.Index(tt.text, "items:")+len("items: [\n"); n -= step {
			text, got, isCut := tt.text[:n], 0, false
			err := Read(t.Context(), strings.NewReader(text), func(e Entry) bool {
				if isCut = errors.Is(e.Err, ErrTruncated); e.Err == nil {
					got++
				}
				return true
			})
			want := strings.Count(text, tt.aEnd) + strings.Count(text, tt.bEnd)
			isWhole := name == "JSON lines" && strings.HasSuffix(strings.TrimSpace(text), "}}")
			if err != nil || got != want || isCut == isWhole {
				t.Errorf("%s, cut to %q: %d objects, error %v, cut: %t; want %d", name, text[max(0, n-30):], got, err,
					isCut, want)
			}
		}
	}
}

// countingReader is a list of many items that counts the bytes read.
type countingReader struct {
	head, item string
	items      int
	rest       string
	read       int
}

func (r *countingReader) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.items == 0 {
			return 0, io.EOF
		}
		r.items--
		r.rest = r.item
		if r.head != "" {
			r.rest, r.head = r.head, ""
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	r.read += n
	return n, nil
}

// TestEntriesStream verifies that items are yielded as they arrive, not at the end of the list.
func TestEntriesStream(t *testing.T) {
	const items = 5000
	grouped := strings.NewReplacer("v1", "g/v1")
	for name, r := range map[string]*countingReader{
		"json": {head: "{\"apiVersion\":\"v1\",\"items\":[" + aJSON, item: "," + grouped.Replace(aJSON),
			items: items},
		"typed list": {head: "{\"apiVersion\":\"g/v1\",\"items\":[" + grouped.Replace(aJSON),
			item: "," + grouped.Replace(aJSON), items: items},
	} {
		t.Run(name, func(t *testing.T) {
			size, yielded, ahead := len(r.item), 0, 0
			if err := Read(t.Context(), r, func(e Entry) bool {
				if e.Err == nil {
					yielded++
					ahead = max(ahead, r.read-yielded*size)
				}
				return true
			}); err != nil || yielded < items-1 {
				t.Fatalf("%d items were yielded (%v), want %d", yielded, err, items)
			}
			if ahead > 1<<17 {
				t.Errorf("%d bytes were read ahead of the yielded items, want at most 128 KiB", ahead)
			}
		})
	}
}

// breaks returns the number of line breaks according to the YAML library.
func breaks(data []byte) int {
	count := 0
	for _, lineBreak := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		count += bytes.Count(data, []byte(lineBreak))
	}
	return count
}

// FuzzEntries reads arbitrary text: it must not panic, lines must not decrease, and objects must be JSON with
// a kind or an apiVersion.
func FuzzEntries(f *testing.F) {
	for _, text := range []string{
		aYAML + "---\n" + bYAML, "apiVersion: v1\nitems:\n" + item(aYAML) + item(bYAML) + "kind: List\n",
		aJSON + "\n---\n" + bYAML, `{"apiVersion":"v1","items":[` + aJSON +
			`],"kind":"List"}`, "items:\n-\n ---\n- x\n", "---\n{\"a\": [}\n",
		"apiVersion: g/v1\nitems:\n- 1\nkind: A\n", "\ufeff{}{", "a: |\n  items:\n  - b\n",
		"%YAML 1.1\n--- {a: b}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		document := 0
		_ = Read(t.Context(), strings.NewReader(string(data)), func(e Entry) bool {
			if e.Member == "" &&
				(e.Document < document || e.Line < min(e.Document, 1) || e.Line > breaks(data)+2) {
				t.Errorf("invalid position: line %d, document %d after document %d", e.Line, e.Document,
					document)
			}
			document = e.Document
			var object map[string]any
			if e.Err == nil && (json.Unmarshal(e.Data, &object) != nil || object["kind"] == nil &&
				object["apiVersion"] == nil) {
				t.Errorf("the object %s is not a JSON object with a kind or an apiVersion", e.Data)
			}
			return true
		})
	})
}
