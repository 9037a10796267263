package packed_test

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/packed"
)

func testPackers(t testing.TB) map[string]*packed.Packer {
	t.Helper()
	all := map[string]*packed.Packer{"nothing": packed.NewPacker(nil)}
	for name, prune := range map[string]packed.Prune{
		"presets":     {ManagedFields: true, LastApplied: true},
		"annotations": {Paths: []packed.Path{{{Key: "metadata"}, {Key: "annotations"}}}},
		"paths": {ManagedFields: true, Annotations: []string{"a", "b"}, Paths: []packed.Path{
			{{Key: "a"}}, {{Key: "spec"}, {Key: "a"}}, {{Key: "spec"}, {Key: "b"}, {Each: true},
				{Key: "a"}}, {{Key: "status"}, {Key: "conditions"}, {Each: true}, {Key: "message"}},
			{{Key: "metadata"}, {Key: "labels"}, {Key: "a"}}, {{Key: "x"}, {Each: true},
				{Each: true}, {Key: "a"}},
		}},
		"labels": {Paths: []packed.Path{{{Key: "metadata"}, {Key: "labels"}}, {{Key: "spec"}}}},
	} {
		pruner, err := packed.NewPruner(prune)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = packed.NewPacker(pruner)
	}
	all["keep-list"] = keepPacker(t)
	return all
}

// seeds are values for which JSON decoders differ, and other edge cases.
var seeds = []string{
	`null`, `true`, `false`, `tru`, `nulll`, `{}`, `[]`, `[[],{}]`, `{"a":{}}`, `[1,]`, `[,1]`, `{"a":1,}`,
	`{,}`, `{"a"}`, `{a:1}`,
	`{"a":1,"a":2}`, `{"a":{"b":1},"a":{"c":2}}`, `{"a":1,"A":2}`, `{"\u0061":1,"a":2}`, `{"":0}`,
	`{"a":1 "b":2}`, `[1 2]`, `{]`, `[}`,
	`0`, `-0`, `-`, `+1`, `01`, `-01`, `1.`, `.5`, `1.0`, `-1.5`, `0e0`, `1e3`, `1E+3`, `1e`, `1e+`, `1e400`,
	`-1e400`, `1e-400`, `0x10`, `NaN`,
	`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`, `1e21`,
	`123456789012345678901234567890`, `0.1`, `1.7976931348623157e308`, `5e-324`,
	`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"\'"`, `"\x41"`, `"\u00e9"`, `"\u00g9"`, `"\u12"`, `"\uD83D\uDE00"`,
	`"\uD83D"`, `"\uDE00"`, `"\u0000"`, `"é日本😀"`, "\"\xff\"", "\"a\xe2\x82\"",
	"\"12345678\x01\"", "\"a\nb\"", "\"a\x7fb\"", `"unterminated`, `"ends with \`, `'a'`, "\v1", "1\x00",
	`//c`, "[1,\n2]", ` [ 1 , { "a" : 2 } ] `,
	strings.Repeat("[", 70) + strings.Repeat("]", 70), strings.Repeat("[", 64) + strings.Repeat(`{"a":`, 65) +
		"1" + strings.Repeat("}", 65) + strings.Repeat("]", 64),
	strings.Repeat("1", 400), `[[{"a":1,"b":2},{"b":2,"a":1},{"a":1}],{"a":1}]`,
}

// documents are objects with edge cases in the fields that the scanner reads.
func documents() []string {
	all := unusualDocuments()
	for _, seed := range seeds {
		for _, place := range []string{
			`%`, `{"apiVersion":"v1","kind":"K","x":%,"y":[%]}`, `{"apiVersion":%,"kind":"K"}`,
			`{"apiVersion":"v1","kind":%}`, `{"apiVersion":"v1","kind":"K","metadata":%}`,
			`{"apiVersion":"v1","kind":"K","metadata":{"managedFields":[%],"name":%,"namespace":%,"uid":%,"resourceVersion":%}}`,
			`{"apiVersion":"v1","kind":"K","metadata":{"labels":%,"annotations":%}}`,
			`{"apiVersion":"v1","kind":"K","metadata":{"labels":{"a":%,"b":"c"},"annotations":{"x":1,"a":%}}}`,
			`{"a":%,"apiVersion":"v1","kind":"K","spec":{"a":%,"b":%},"status":{"conditions":%}}`,
			`{%:1,"apiVersion":"v1","kind":"K","metadata":{%:%,"labels":{%:"x"}},"spec":{%:2}}`,
		} {
			all = append(all, strings.ReplaceAll(place, "%", seed))
		}
	}
	return all
}

// unusualDocuments are the documents that are not generated from seeds.
func unusualDocuments() []string {
	return []string{
		string(certificate(1)), `{}`, `null`, `[]`, `1`, ``, ` `, `{"kind":"K"}`, `{"apiVersion":"v1"}`,
		`{"apiVersion":"v1","kind":"K"} x`, `{"apiVersion":"v1","kind":"K"}` + "\n",
		`{"apiVersion":"v1","kind":""}`, `{"apiVersion":"","kind":"K"}`, `{"apiVersion":"a/b/c","kind":"K"}`,
		`{"apiVersion":"a/","kind":"K"}`, `{"apiVersion":"/v1","kind":"K"}`,
		`{"apiVersion":1,"kind":"K"}`, `{"apiVersion":null,"kind":"K"}`, `{"apiVersion":"v1","kind":{}}`,
		`{"apiVersion":"v1","kind":null}`, `{"Kind":"K","APIVersion":"v1"}`,
		`{"apiVersion":"v1","kind":"K","kind":"L"}`, `{"apiVersion":"v1","kind":"K","\u006bind":"L"}`,
		`{"apiVersion":"v1","kind":"\u004b"}`, `{"apiVersion":"v\u0031","kind":"é"}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"a"},"metadata":{"name":"b"}}`,
		`{"apiVersion":"v1","kind":"K","Metadata":{"name":"a"},"metadata":{"Name":"b"}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"a","name":"b","namespace":"x","uid":"1","uid":2,"resourceVersion":"5","labels":{"a":"b"},"labels":{"c":"d"}}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"a","labels":{"a":"b"},"labels":null,"annotations":{"a":"1","b":"2"},"annotations":{"c":"3"}}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"managedFields":1,"managedFields":[],"name":"a"}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"a","managedFields":1,"managedFields":[]}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"managedFields":[{}]}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"\u006danagedFields":[{}],"x":1}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"managedFields":[] , "x" : 1 , "managedFields":[] } }`,
		` { "managedFields":[] , "metadata" : { } , "apiVersion" : "v1" , "kind" : "K" } `,
		`{"a":1,"apiVersion":"v1","kind":"K","spec":{"a":1,"b":[{"a":1},{"a":1,"c":2},{"c":2,"a":1},{"c":1,"a":2,"d":3},5,null,[]]},"x":[[{"a":1}],[{"b":1}]]}`,
		`{"apiVersion":"v1","a":1,"kind":"K","spec":{"b":{"a":1},"a":[]},"x":[[{"a":1,"\u0061":2,"a":3}],{}]}`, `{"apiVersion":"v1","kind":"K","a":1}`, `{"spec":{},"apiVersion":"v1","kind":"K","a":1}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"labels":{"a":null,"b":"c"}}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"labels":{"a":null,"b":"null"}}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"labels":{ "a" : "b" , "c" : "d" }}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"labels":{"a":"x","a":"y","b":1,"b":"z"}}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"12"}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"annotations":{"a":"1","k8s.io/initial-events-end":"true","b":"2"},"resourceVersion":"12"}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"` + strings.Repeat("n", 70_000) +
			`","namespace":"` + strings.Repeat("s", 70_000) + `","uid":"` + strings.Repeat("u",
			70_000) + `"}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"x/y","namespace":"a/b"}}`,
		`{"apiVersion":"v1","kind":"KList","items":[{}],"metadata":{"name":"a"}}`,
		`{"apiVersion":"v1","kind":"K","x":` + strings.Repeat("[", 6000) + strings.Repeat("]", 6000) +
			`}`, `{"apiVersion":"v1","kind":"K","x":` + strings.Repeat("[", 20_000) +
			strings.Repeat("]", 20_000) + `}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"managedFields":` + strings.Repeat("[", 4998) +
			strings.Repeat("]", 4998) + `}}`,
	}
}

func TestPackAgrees(t *testing.T) {
	for name, packer := range testPackers(t) {
		t.Run(name, func(t *testing.T) {
			for _, document := range documents() {
				compareWithUnstructured(t, packer, []byte(document))
			}
		})
	}
}

func FuzzPackAgrees(f *testing.F) {
	for _, document := range unusualDocuments() {
		if len(document) < 10_000 {
			f.Add([]byte(document))
		}
	}
	all := testPackers(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		// unstructured.UnmarshalJSON, the reference implementation, takes minutes for deeply nested JSON.
		if strings.Count(string(data), "[")+strings.Count(string(data), "{") > 2000 {
			return
		}
		for _, packer := range all {
			compareWithUnstructured(t, packer, data)
		}
	})
}
