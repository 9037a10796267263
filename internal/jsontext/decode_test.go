package jsontext_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// seeds are values for which JSON decoders differ.
var seeds = []string{
	`null`, `true`, `false`, `tru`, `nulll`, `True`, `{}`, `[]`, `[[],{}]`, `{"a":{}}`, `[1,]`, `[,1]`,
	`{"a":1,}`, `{,}`, `{"a"}`, `{a:1}`,
	`{"a":1,"a":2}`, `{"a":{"b":1},"a":{"c":2}}`, `{"a":1,"A":2}`, `{"\u0061":1,"a":2}`, `{"":0}`,
	`{"a":1 "b":2}`, `[1 2]`, `{]`, `[}`,
	`0`, `-0`, `-`, `+1`, `01`, `-01`, `1.`, `.5`, `1.0`, `-1.5`, `0e0`, `1e3`, `1E+3`, `1e`, `1e+`, `1e400`,
	`-1e400`, `1e-400`, `0x10`, `NaN`, `Infinity`,
	`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`,
	`999999999999999999`, `1000000000000000000`,
	`123456789012345678901234567890`, `0.1`, `3.0e10`, `1.7976931348623157e308`, `5e-324`,
	`00`, `1_000`, `1a`,
	`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"\'"`, `"\x41"`, `"\u00e9"`, `"\u00E9"`, `"\u00g9"`, `"\u12"`,
	`"\uD83D\uDE00"`, `"\uD83D"`, `"\uDE00"`, `"\uD83Dx"`,
	`"\uD83D\n"`, `"\uD83D\uD83D\uDE00"`, `"\uD83D\u0041"`, `"\uDE00\uD83D"`, `"\uD83D\u"`, `"\u0000"`,
	`"\ufffd"`, `"é"`, `"日本語 and 😀"`, "\"\xff\"", "\"\xc3\"", "\"a\xe2\x82\"",
	"\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xc0\x80\"", "\"long enough for words\xff\"",
	`"12345678\"9"`, `"1234567\\"`, "\"12345678\x01\"", "\"a\nb\"", "\"a\x7fb\"", "\"\t\"",
	`"unterminated`, `"ends with \`, `"ends with \"`, `'a'`, ` 1 `, "\t\r\n 1", "\v1", "\f1", "\u00a01",
	"\ufeff1", "1\x00", "\x00", "1 2", `{} {}`, `//c`, `/**/1`, "[1,\n2]",
	strings.Repeat("[", 100) + strings.Repeat("]", 100), `[[[[]]]`, strings.Repeat(`{"a":`, 50) + "1" +
		strings.Repeat("}", 50),
}

// wrap returns objects that contain seeds.
func wrap(value string) []byte { return []byte(`{"kind":"K","x":` + value + `,"y":[` + value + `]}`) }

// checkAgreement fails the test unless Decoder and the reference decode data to the same value, or both
// reject it.
func checkAgreement(t *testing.T, d *jsontext.Decoder, data []byte) {
	t.Helper()
	want, wantErr := reference(data)
	got, gotErr := d.Decode(data)
	if (wantErr == nil) != (gotErr == nil) {
		t.Fatalf("%.200q: got the error %v, want %v", data, gotErr, wantErr)
	}
	if wantErr != nil {
		var syntax *jsontext.SyntaxError
		if !errors.As(gotErr, &syntax) || syntax.Offset > len(data) {
			t.Fatalf("%.200q: got %#v, want a SyntaxError within the data", data, gotErr)
		}
		return
	}
	if !reflect.DeepEqual(want, got) { // cmp takes minutes for deep nesting
		t.Fatalf("%.200q: (-want +got)\n%s", data, cmp.Diff(want, got))
	}
}

// manifests returns the objects of the repository's testdata as JSON.
func manifests(t testing.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob("../../testdata/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	var all [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("\n---")) {
			converted, err := yaml.YAMLToJSON(document)
			if err != nil {
				t.Fatalf("YAMLToJSON of %s: %v", file, err)
			}
			all = append(all, converted)
		}
	}
	return all
}

// TestBufferReuse verifies that a decoded object does not change when its data is overwritten.
func TestBufferReuse(t *testing.T) {
	d := jsontext.NewDecoder()
	for n := range 200 { // later objects share the strings of the first ones
		data := certificate(n % 3)
		if n%2 == 0 {
			data = wrap(`["\u00e9t\u00e9","caf` + "\xff" + `","short",""]`)
		}
		want, _ := reference(data)
		got, err := d.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			data[i] = '#'
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the object changed with its buffer (-want +got)\n%s", diff)
		}
	}
}

// TestResultsAreOwned changes all values of each result, which must not affect later results of the same
// text.
func TestResultsAreOwned(t *testing.T) {
	d := jsontext.NewDecoder()
	data := wrap(`[{"plain":1},{"a":1,"b":2,"c":3,"d":4,"e":{"f":["deep",{"g":{}}]}},["one",{"two":{}}],{"some":{},"empty":[]}]`)
	for range 5 {
		checkAgreement(t, d, data)
		object, err := d.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		mutate(object)
	}
}

// mutate changes all maps and slices in value.
func mutate(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			mutate(value[key])
			value[key] = "spoilt"
		}
		value["spoilt"] = true
	case []any:
		for i := range value {
			mutate(value[i])
			value[i] = "spoilt"
		}
	}
}

// TestOnlyCommonStringsAreShared decodes the same objects repeatedly, like a controller. Unique strings must
// not evict common ones.
func TestOnlyCommonStringsAreShared(t *testing.T) {
	const objects = 1000
	d := jsontext.NewDecoder()
	data := func(object map[string]any, key string) *byte {
		return unsafe.StringData(object["metadata"].(map[string]any)[key].(string))
	}
	all := documents(objects, certificate)
	before := make([]map[string]any, objects)
	for round := range 4 {
		for n, document := range all {
			object, err := d.Decode(document)
			if err != nil {
				t.Fatal(err)
			}
			if round > 0 && (data(object, "uid") == data(before[n], "uid") ||
				data(object, "resourceVersion") == data(before[n], "resourceVersion")) {
				t.Fatalf("in round %d, object %d shares a string that no other object has", round, n)
			}
			before[n] = object
		}
	}
	if a, b := before[7]["kind"].(string),
		before[8]["kind"].(string); unsafe.StringData(a) != unsafe.StringData(b) {
		t.Error("two objects do not share the string of their kind")
	}
}

// TestErrors checks the offset and reason of errors.
func TestErrors(t *testing.T) {
	tests := map[string]jsontext.SyntaxError{
		`{"a":1`: {Offset: 6,
			Reason: "unexpected end of the data, want a comma or the end of an object or array"},
		`{"a":tru}`:   {Offset: 5, Reason: "want a value"},
		`{"a" 1}`:     {Offset: 5, Reason: "want a colon"},
		`{"a":"\q"}`:  {Offset: 7, Reason: "an unknown escape in a string"},
		`{"a":1e999}`: {Offset: 10, Reason: "a number out of range"},
		`{} x`:        {Offset: 3, Reason: "data after the value"},
		`[]`:          {Reason: "want an object, not a []interface {}"},
	}
	for data, want := range tests {
		_, err := jsontext.NewDecoder().Decode([]byte(data))
		var got *jsontext.SyntaxError
		if !errors.As(err, &got) {
			t.Fatalf("%s: got %v, want a syntax error", data, err)
		}
		if diff := cmp.Diff(want, *got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", data, diff)
		}
		if !strings.Contains(err.Error(), want.Reason) {
			t.Errorf("the message %q does not contain the reason", err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
		f.Add(wrap(seed))
	}
	f.Add(certificate(1))
	f.Add(workload(1))
	f.Add(list(2, certificate))
	for _, document := range manifests(f) {
		f.Add(document)
	}
	d := jsontext.NewDecoder() // shared, so that strings of one input occur in others
	f.Fuzz(func(t *testing.T, data []byte) {
		for range 3 { // the second and third time, strings are shared
			checkAgreement(t, d, data)
		}
	})
}

// reference decodes data with the decoder that provides the expected results.
func reference(data []byte) (map[string]any, error) {
	object := map[string]any{}
	err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object)
	return object, err
}
