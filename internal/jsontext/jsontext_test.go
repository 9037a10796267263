package jsontext_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// limit is the nesting limit of the tests; the reference rejects more than 10,000.
const limit = 10000

var texts = []string{
	`{}`, `[]`, `null`, `true`, `false`, `"a"`, `0`, `-0`, `12`, `-1.5e+3`, `1E-2`,
	`{"a":[1,{"b":"c"}],"d":{}}`, " {\n\t\"a\" :\r 1 , \"b\" : [ ] } ",
	`"\u00e9\ud83d\ude00\ud800x\n\/\"\\"`, "\"\xff\xc3\xa9 long enough for words of eight\"",
	`"\uD83D\u0041"`, `"` + strings.Repeat("abcdefg", 9) + `\t"`,
	``, ` `, `{`, `[1`, `[1,`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `"a`, `"\`, `"\u12`, `-`, `1.`, `1e`,
	`1e+`, `tru`, `nul`,
	`01`, `+1`, `.5`, `{a:1}`, `{"a":1,}`, `[1,]`, `[1 2]`, `{"a" 1}`, `"\q"`, `"\u12g4"`, "\"\x01\"",
	"\"12345678\x1f\"", `]`, `{]`, `[}`, `1e400`, `-1e400`, `1e-400`, "\x00", "{}\x00", "1 \v",
	`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `123456789012345678`,
	`1234567890123456789`, strings.Repeat("9", 310),
	strings.Repeat("[", 70) + strings.Repeat("]", 70), strings.Repeat(`{"a":[`, 40) + strings.Repeat("]}",
		40), strings.Repeat("[", 130) + strings.Repeat("]", 129),
}

func TestSkip(t *testing.T) {
	for _, seed := range texts {
		skipAgrees(t, []byte(seed))
	}
}

func FuzzSkip(f *testing.F) {
	for _, seed := range texts {
		f.Add([]byte(seed))
	}
	f.Fuzz(skipAgrees)
}

// skipAgrees compares Skip with sigs.k8s.io/json.
func skipAgrees(t *testing.T, data []byte) {
	start := jsontext.SkipSpace(data, 0)
	end, deep := jsontext.Skip(data, start, limit)
	ok := end >= 0 && jsontext.SkipSpace(data, end) == len(data)
	var value any
	err := kjson.UnmarshalCaseSensitivePreserveInts(data, &value)
	if ok != (err == nil) {
		t.Fatalf("%q: Skip() = %d, deep %v; the reference returned the error %v", data, end, deep, err)
	}
	if end < 0 {
		if ^end < start || ^end > len(data) {
			t.Fatalf("%q: Skip() reports a problem at %d, want a position in the data", data, ^end)
		}
		_ = jsontext.SkipProblem(data, ^end)
	}
	whole, complete, more := jsontext.SkipValue(data, start)
	if complete && !deep && whole != end {
		t.Fatalf("%q: the value ends at %d by SkipValue, and at %d by Skip", data, whole, end)
	}
	if more == (end < 0 && ^end < len(data)) && !deep && !complete {
		t.Fatalf("%q: truncated = %v, but the error is at %d", data, more, ^end)
	}
}

func TestText(t *testing.T) {
	for _, seed := range texts {
		textAgrees(t, []byte(seed))
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range texts {
		f.Add([]byte(seed))
	}
	f.Fuzz(textAgrees)
}

// textAgrees reads the data as a string and compares with encoding/json.
func textAgrees(t *testing.T, text []byte) {
	data := append(append([]byte{'"'}, text...), '"')
	end := jsontext.ScanString(data, 1)
	again, encoded := jsontext.ScanAnyString(data, 1)
	if end != again {
		t.Fatalf("%q: the string ends at %d by ScanString, and at %d by ScanAnyString", data, end, again)
	}
	var want string
	err := json.Unmarshal(data, &want)
	if ok := end == len(data); ok != (err == nil) {
		t.Fatalf("%q: the string ends at %d; encoding/json returned the error %v", data, end, err)
	}
	if end < 0 {
		_ = jsontext.StringProblem(data, ^end)
	}
	plainEnd, plain := jsontext.ScanPlain(data, 1)
	if want := end > 0 && !encoded && !strings.ContainsFunc(string(data[:max(end, 0)]),
		func(r rune) bool { return r >= utf8.RuneSelf }); plain != want || plain && plainEnd != end {
		t.Fatalf("%q: ScanPlain() = %d, %v, want %v", data, plainEnd, plain, want)
	}
	copyAgrees(t, data, plainEnd-2, plain)
	got := string(jsontext.AppendUnescaped(nil, text))
	if err != nil {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" || encoded != (want != string(text) || !utf8.Valid(text)) {
		t.Fatalf("%q: encoded %v (-want +got):\n%s", data, encoded, diff)
	}
}

// copyAgrees copies a string into buffers of sufficient and insufficient size. The copy may fail near the end
// of the data.
func copyAgrees(t *testing.T, data []byte, length int, plain bool) {
	t.Helper()
	const word = 8
	for _, tail := range []string{"", "12345678"} {
		for _, room := range []int{len(data) + word, length} {
			dst := make([]byte, max(room, 0))
			n, ok := jsontext.CopyPlainText(dst, append(data[:len(data):len(data)], tail...), 1)
			if ok && !plain || !ok && plain && tail != "" && room > length {
				t.Fatalf("%q with a buffer of %d bytes: CopyPlainText() = %t, want %t", data, room, ok, !ok)
			}
			if ok && string(dst[:n]) != string(data[1:1+length]) {
				t.Fatalf("%q: CopyPlainText() copied %q, want %q", data, dst[:n], data[1:1+length])
			}
		}
	}
}

func TestNumber(t *testing.T) {
	for _, seed := range texts {
		numberAgrees(t, []byte(seed))
	}
}

func FuzzNumber(f *testing.F) {
	for _, seed := range texts {
		f.Add([]byte(seed))
	}
	f.Fuzz(numberAgrees)
}

// numberAgrees compares numbers with sigs.k8s.io/json.
func numberAgrees(t *testing.T, data []byte) {
	end, form := jsontext.ScanNumber(data, 0)
	if end != len(data) {
		return // data after a number is not compared
	}
	var want any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &want); err != nil {
		if jsontext.IsFloat64(data, form) {
			t.Fatalf("%q: IsFloat64() = true, but the number is not a float64: %v", data, err)
		}
		return
	}
	i, f, isInteger, ok := jsontext.ParseNumber(data)
	var got any = f
	if isInteger {
		got = i
	}
	if !ok || !jsontext.IsFloat64(data, form) || !cmp.Equal(want, got) ||
		math.Signbit(f) != (!isInteger && data[0] == '-') {
		t.Fatalf("%q: ParseNumber() = %v, %v, want %v, true", data, got, ok, want)
	}
}

func ExampleSkip() {
	data := []byte(`[1, {"a": "b"}] rest`)
	end, _ := jsontext.Skip(data, 0, 100)
	fmt.Printf("%s\n", data[:end])
	end, _ = jsontext.Skip([]byte(`[1, {"a" "b"}]`), 0, 100)
	fmt.Println("wrong at", ^end)
	// Output:
	// [1, {"a": "b"}]
	// wrong at 9
}
