package jsontext_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
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

// certificate is a custom resource of about 2 KB, half of it managed fields, as an API server sends it.
func certificate(n int) []byte {
	return fmt.Appendf(
		nil, `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":{"cert-manager.io/issue-temporary-certificate":"true","team":"team-%[2]d"},"creationTimestamp":"2026-11-20T10:%02[3]d:00Z","generation":1,"labels":{"app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"app-%[2]d","env":"prod"},"managedFields":[{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:cert-manager.io/issue-temporary-certificate":{},"f:team":{}},"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:env":{}}},"f:spec":{".":{},"f:dnsNames":{},"f:issuerRef":{},"f:secretName":{}}},"manager":"helm","operation":"Update","time":"2026-11-20T10:%02[3]d:00Z"},{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:notAfter":{},"f:notBefore":{},"f:renewalTime":{},"f:revision":{}}},"manager":"cert-manager-certificates-readiness","operation":"Update","subresource":"status","time":"2026-11-20T10:%02[3]d:05Z"}],"name":"certificate-%[1]d","namespace":"tenant-%[2]d","resourceVersion":"%[4]d","uid":"5f0c1c6e-7d21-4a8e-9d0b-%012[1]d"},"spec":{"dnsNames":["host-%[1]d.example.com","www.host-%[1]d.example.com"],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt"},"privateKey":{"algorithm":"ECDSA","rotationPolicy":"Always","size":256},"renewBefore":"360h0m0s","secretName":"tls-%[1]d","usages":["digital signature","key encipherment"]},"status":{"conditions":[{"lastTransitionTime":"2026-11-20T10:%02[3]d:05Z","message":"Certificate is up to date and has not expired","observedGeneration":1,"reason":"Ready","status":"True","type":"Ready"}],"notAfter":"2027-02-18T10:%02[3]d:04Z","notBefore":"2026-11-20T10:%02[3]d:04Z","renewalTime":"2027-02-03T10:%02[3]d:04Z","revision":1}}`,
		n, n%50, n%60, 1_000_000+n)
}

// workload is an object of about 10 KB, with container templates like Deployments.
func workload(n int) []byte {
	var containers []string
	for c := range 14 {
		containers = append(containers,
			fmt.Sprintf(`{"args":["--listen=:80%02[2]d","--log-level=info","--shard=%[1]d"],"env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},{"name":"REGION","value":"eu-%[2]d"},{"name":"TOKEN","value":"%[1]d/%[2]d:\u003csecret\u003e\n"}],"image":"registry.example.com/team/app-%[2]d:v1.%[3]d.0","imagePullPolicy":"IfNotPresent","livenessProbe":{"failureThreshold":3,"httpGet":{"path":"/healthz","port":80%02[2]d,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1},"name":"container-%[2]d","resources":{"limits":{"cpu":"500m","memory":"512Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"terminationMessagePath":"/dev/termination-log","volumeMounts":[{"mountPath":"/data","name":"data"}]}`, n, c, n%7))
	}
	return fmt.Appendf(
		nil, `{"apiVersion":"apps.example.com/v1","kind":"Workload","metadata":{"annotations":{"deployment.kubernetes.io/revision":"3"},"creationTimestamp":"2026-11-20T10:%02[2]d:00Z","generation":3,"labels":{"app":"app-%[3]d","tier":"backend"},"name":"workload-%[1]d","namespace":"tenant-%[3]d","resourceVersion":"%[4]d","uid":"1a0c1c6e-7d21-4a8e-9d0b-%012[1]d"},"spec":{"paused":false,"ratio":0.75,"replicas":3,"selector":{"matchLabels":{"app":"app-%[3]d"}},"template":{"metadata":{"creationTimestamp":null,"labels":{"app":"app-%[3]d"}},"spec":{"containers":[%[5]s],"volumes":[{"emptyDir":{},"name":"data"}]}}},"status":{"availableReplicas":3,"conditions":[{"lastTransitionTime":"2026-11-20T10:%02[2]d:05Z","message":"Workload has minimum availability.","reason":"MinimumReplicasAvailable","status":"True","type":"Available"}],"observedGeneration":3,"readyReplicas":3,"replicas":3,"updatedReplicas":3}}`,
		n, n%60, n%50, 1_000_000+n, strings.Join(containers, ","))
}

// list returns a list of items as an API server sends it.
func list(count int, item func(int) []byte) []byte {
	var items []string
	for n := range count {
		items = append(items, string(item(n)))
	}
	return fmt.Appendf(
		nil, `{"apiVersion":"cert-manager.io/v1","items":[%s],"kind":"CertificateList","metadata":{"continue":"","resourceVersion":"2000000"}}`, strings.Join(items, ","))
}

func documents(count int, item func(int) []byte) [][]byte {
	all := make([][]byte, count)
	for n := range all {
		all[n] = item(n)
	}
	return all
}

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

// TestStream verifies that a stream returns values that are larger than its buffer or arrive byte by byte.
func TestStream(t *testing.T) {
	large := `"` + strings.Repeat("x", 200<<10) + `"`
	const small = `{"a":[1,{"b":null}]}`
	values := []string{small, large, `12`, `-1.5e3`, `true`, small}
	text := " [" + strings.Join(values, " ,\n") + "] "
	for name, source := range map[string]io.Reader{
		"whole": strings.NewReader(text),
		"bytes": iotest.OneByteReader(strings.NewReader("[" + strings.Join(values[2:], ",") + "]")),
		"error": iotest.DataErrReader(strings.NewReader(text)),
	} {
		t.Run(name, func(t *testing.T) {
			s := jsontext.NewStream(source)
			if ok, err := s.Take('['); !ok || err != nil {
				t.Fatalf("Take('[') = %v, %v, want true", ok, err)
			}
			want := values
			if name == "bytes" {
				want = values[2:]
			}
			for i, value := range want {
				if ok, err := s.Take(','); ok != (i > 0) || err != nil {
					t.Fatalf("Take(',') before value %d = %v, %v", i, ok, err)
				}
				got, err := s.Value()
				if err != nil || string(got) != value {
					t.Fatalf("value %d = %.40q, %v", i, got, err)
				}
			}
			if ok, err := s.Take(']'); !ok || err != nil {
				t.Errorf("Take(']') = %v, %v, want true", ok, err)
			}
			if _, err := s.Peek(); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("Peek() at the end = %v, want io.ErrUnexpectedEOF", err)
			}
		})
	}
}
