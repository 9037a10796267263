package jsontext_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// pairAgrees fails the test unless DecodePair returns the results of Decode.
func pairAgrees(t *testing.T, d, fresh *jsontext.Decoder, first, second []byte) {
	t.Helper()
	wantOne, errOne := fresh.Decode(first)
	wantOther, errOther := fresh.Decode(second)
	one, other, err := d.DecodePair(first, second)
	if (err != nil) != (errOne != nil || errOther != nil) {
		t.Fatalf("%.200q and %.200q: got the error %v, want those of %v and %v", first, second, err,
			errOne, errOther)
	}
	if err != nil {
		return
	}
	if !reflect.DeepEqual(wantOne, one) {
		t.Fatalf("%.200q before %.200q: (-want +got)\n%s", first, second, cmp.Diff(wantOne, one))
	}
	if !reflect.DeepEqual(wantOther, other) {
		t.Fatalf("%.200q after %.200q: (-want +got)\n%s", second, first, cmp.Diff(wantOther, other))
	}
}

// pairs returns texts before and after a change.
func pairs() [][2]string {
	certificate, workload := string(certificate(7)), string(workload(7))
	all := [][2]string{
		{certificate, certificate},
		{certificate, strings.Replace(certificate, `"resourceVersion":"1000007"`,
			`"resourceVersion":"1000008"`, 1)},
		{certificate, strings.Replace(certificate, `"revision":1`, `"revision":2`, 1)},
		{certificate, strings.Replace(certificate, `"revision":1`,
			`"failedIssuanceAttempts":3,"revision":1`, 1)},
		{certificate, strings.Replace(certificate, `"spec":{`,
			`"spec":{"commonName":"host-7.example.com",`, 1)},
		{certificate, workload},
		{workload, strings.Replace(workload, `"containers":[`, `"containers":[{"name":"first"},`, 1)},
		{workload, strings.Replace(workload, `"name":"container-3"`, `"name":"container-4"`, 1)},
		{`{"a":["one two three","four"],"b":{"c":{}}}`, `{"a":["one two three","five"],"b":{"c":{}}}`},
		{`{"a":{"x":"long ago"},"a":{"x":"lately"}}`, `{"a":{"x":"lately"},"a":{"x":"long ago"}}`},
		{`{"a":"ab"}`, `{"a":"abc"}`}, {`{"a":"ab\"c"}`, `{"a":"ab"}`}, {`{"a":[1]}`,
			`{"a":[1,2]}`}, {`{"a":{}}`, `{"a":[]}`},
		{`{"a": {"b": "c"}}`, "{\"a\":\n{\"b\": \"c\"} }"}, {`{}`, `null`}, {`null`,
			`{}`}, {`{"a":[[],[[]]]}`, `{"a":[[],[[[]]]]}`},
		{`{"a":"x"`, `{"a":"x"}`}, {`{"a":"x"}`, `{"a":"x"`},
	}
	for n, seed := range seeds {
		all = append(all, [2]string{string(wrap(seed)), string(wrap(seeds[(n+1)%len(seeds)]))})
	}
	return all
}

func TestDecodePairAgrees(t *testing.T) {
	d, fresh := jsontext.NewDecoder(), jsontext.NewDecoder()
	for range 3 { // the second and third time, strings are shared
		for _, pair := range pairs() {
			pairAgrees(t, d, fresh, []byte(pair[0]), []byte(pair[1]))
			pairAgrees(t, d, fresh, []byte(pair[1]), []byte(pair[0]))
		}
	}
}

// TestDecodePairShares checks that unchanged parts are shared.
func TestDecodePairShares(t *testing.T) {
	d := jsontext.NewDecoder()
	before := certificate(7)
	after := bytes.Replace(before, []byte(`"revision":1`), []byte(`"revision":2`), 1)
	after = bytes.Replace(after, []byte(`"resourceVersion":"1000007"`),
		[]byte(`"resourceVersion":"1000008"`), 1)
	one, other, err := d.DecodePair(after, before)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []struct {
		path   []string
		shared bool
	}{
		{[]string{"spec"}, true},
		{[]string{"status"}, false},
		{[]string{"status", "conditions"}, true},
		{[]string{"metadata"}, false},
		{[]string{"metadata", "labels"}, true},
		{[]string{"metadata", "managedFields"}, true},
	} {
		if same := pointer(one, path.path) == pointer(other, path.path); same != path.shared {
			t.Errorf("%v is shared: %v, want %v", path.path, same, path.shared)
		}
	}
	// Later results share no memory.
	if third, err := d.Decode(before); err != nil || pointer(third, []string{"spec"}) == pointer(one,
		[]string{"spec"}) {
		t.Errorf("a later result shares the spec of a pair (%v)", err)
	}
}

func pointer(value any, path []string) uintptr {
	for _, key := range path {
		value = value.(map[string]any)[key]
	}
	return reflect.ValueOf(value).Pointer()
}

func FuzzDecodePair(f *testing.F) {
	for _, pair := range pairs() {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	d, fresh := jsontext.NewDecoder(), jsontext.NewDecoder()
	f.Fuzz(func(t *testing.T, first, second []byte) {
		for _, text := range [][]byte{first, second} {
			if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > 2000 {
				return // reflect.DeepEqual takes long
			}
		}
		pairAgrees(t, d, fresh, first, second)
		pairAgrees(t, d, fresh, second, first)
	})
}
