package jsontext

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestCanonicalizerTruncated verifies that each prefix of an object is recognized as incomplete.
func TestCanonicalizerTruncated(t *testing.T) {
	const text = `{ "b" : [ -1.5e3 , true , null , { } , "\u00e9\\" ] , "a" : { "c" : false , "b" : 0 } }`
	c := &Canonicalizer{}
	for n := range len(text) {
		if got, end, truncated := c.Append(nil, []byte(text[:n]), 0); end >= 0 || !truncated || got != nil {
			t.Errorf("Append(%s) = %s, %d, %v, want truncated", text[:n], got, end, truncated)
		}
	}
	const want = `{"a":{"b":0,"c":false},"b":[-1500,true,null,{},"é\\"]}`
	if got, end, _ := c.Append(nil, []byte(text), 0); string(got) != want || end != len(text) {
		t.Errorf("Append(%s) = %s, %d, want %s, %d", text, got, end, want, len(text))
	}
}

// documents are sorted and unsorted documents with all values that encoders format differently.
var documents = []string{
	``, ` `, `{}`, ` { "a" : [ ] , "b" : { } } `, `null`, `[1,]`, `{"a":1,}`, `{"a" 1}`, `{"a":1 "b":2}`,
	`[1}`, `{"a":1]`, `[1] 2`,
	`[1,2.0,-0,1e3,1E+2,0.1e-7,12345678901234567890,-9223372036854775808,9223372036854775807,1e400,-]`,
	`{"a":[true,false,null,tru]}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a\u0062":1,"ab":2}`, `{"A":1,"a":2}`,
	`{"é":1,"z":2}`,
	`{"a":"\u003c\/\ud83d\ude00\ud83d"}`, `{"\u0000":null,"\u0001":true}`, "{\"a\":\"\xff\u2028\x7f\"}",
	`{"z":1,"é":"è"}`,
	`{"<a&b>":"12345678<","\\":1,"]":2}`, `{"a":"\b\f\n\r\t\u001f\"\\ 日本"}`,
	`{"a":{"":{"":[[],[{}],[[[]]]]}}}`,
	strings.Repeat("[", maxIndentDepth) + strings.Repeat("]", maxIndentDepth), strings.Repeat("[", maxIndentDepth+1) +
		strings.Repeat("]", maxIndentDepth+1),
}

// FuzzIndented compares indenting with decoding and encoding, and Members with encoding/json.
func FuzzIndented(f *testing.F) {
	for _, document := range documents {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkMembers(t, data)
		got, ok := AppendIndented([]byte("kept"), data, "> ", "  ")
		if !ok {
			if string(got) != "kept" {
				t.Errorf("%q: AppendIndented() changed dst to %q although it returned false", data, got)
			}
			return
		}
		value, err := NewDecoder().DecodeValue(data)
		if err != nil {
			t.Fatalf("AppendIndented(%q) accepted invalid JSON: %v", data, err)
		}
		if want, err := json.MarshalIndent(value, "> ", "  "); err != nil ||
			string(got) != "kept"+string(want) {
			t.Errorf("%q is written\n%s\nwant\n%s (%v)", data, got, want, err)
		}
		c := &Canonicalizer{}
		for range 2 { // the second time with the scratch space of the first
			got, end, _ := c.Append([]byte("kept"), append(data, " {"...), SkipSpace(data, 0))
			want, err := json.Marshal(value)
			if err != nil || end < 0 || SkipSpace(data, end) != len(data) || string(got) != "kept"+string(want) {
				t.Errorf("%q is written\n%s, end %d\nwant\n%s (%v)", data, got, end, want, err)
			}
		}
	})
}

// checkMembers compares Members with a decoder.
func checkMembers(t *testing.T, data []byte) {
	t.Helper()
	if bytes.Count(data, []byte("[")) > maxLevels {
		return
	}
	var object map[string]any
	objectErr := utiljson.Unmarshal(data, &object)
	members, err := countMembers(t, data)
	if valid := objectErr == nil && object != nil; valid != (err == nil) || valid && members < len(object) {
		t.Errorf("%q: Members() yields %d members (%v), a decoder %d (%v)", data, members, err, len(object),
			objectErr)
	}
}

func countMembers(t *testing.T, data []byte) (count int, err error) {
	t.Helper()
	for m, err := range Members(data) {
		if err != nil {
			return count, err
		}
		count++
		text := data[m.Start:m.End]
		var key string
		if m.Key != nil {
			end := ScanString(text, 1)
			key = string(AppendUnescaped(nil, text[1:end-1]))
		}
		if !bytes.HasSuffix(text, m.Value) || key != string(m.Key) {
			t.Errorf("%q: member %q has the key %q and the value %q", data, text, m.Key, m.Value)
		}
	}
	return count, nil
}

// TestIndented checks documents that must be indented without decoding.
func TestIndented(t *testing.T) {
	for document, want := range map[string]string{
		` {"a": [1.0, -0, "<\/"], "é": {}} `: "{\n\"a\": [\n1,\n0,\n\"\\u003c/\"\n],\n\"é\": {}\n}",
		"\"\xff\u2028\"":                     "\"\ufffd\\u2028\"",
		`{"\u0061":1,"b":2}`:                 "{\n\"a\": 1,\n\"b\": 2\n}",
		`{"z":{"y":{},"b":[]},"\u0061":1}`:   "{\n\"a\": 1,\n\"z\": {\n\"b\": [],\n\"y\": {}\n}\n}",
	} {
		if got, ok := AppendIndented(nil, []byte(document), "", ""); !ok || string(got) != want {
			t.Errorf("AppendIndented(%s) = %s, %v, want %s", document, got, ok, want)
		}
	}
	for _, document := range []string{`{"b":1,"a":2,"b":3}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`} {
		if got, ok := AppendIndented(nil, []byte(document), "", ""); ok {
			t.Errorf("AppendIndented(%s) = %s, want false", document, got)
		}
	}
}
