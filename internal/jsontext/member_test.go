package jsontext_test

import (
	"testing"

	"github.com/crdcache/crdcache/internal/jsontext"
)

func TestAppendWithout(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":{"b":1}}`:                              `{"a":{}}`,
		`{"a":{"b":[1,{"b":2}],"c":3}}`:              `{"a":{"c":3}}`,
		`{"a":{"c":3,"b":"x"},"b":4}`:                `{"a":{"c":3},"b":4}`,
		`{"a":{"c":3,"b":"x","d":5}}`:                `{"a":{"c":3,"d":5}}`,
		` { "x" : "{" , "a" : { "b" : 1 , "c":2 } }`: ` { "x" : "{" , "a" : { "c":2 } }`,
		`{ "a": { "c": 2 , "b": 1 } }`:               `{ "a": { "c": 2  } }`,
		`{"b":1,"a":{"c":{"b":1}}}`:                  `{"b":1,"a":{"c":{"b":1}}}`,
		`{"a":[{"b":1}]}`:                            `{"a":[{"b":1}]}`,
		`{}`:                                         `{}`,
		`[]`:                                         `[]`,
		``:                                           ``,
		`{"a":{"b":`:                                 `{"a":{"b":`,
	} {
		if got := string(jsontext.AppendWithout(nil, []byte(text), "a", "b")); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
