package decode

import (
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/json"
)

type allKinds struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	embedded
	Text       string                 `json:"text"`
	Named      corev1.ConditionStatus `json:"named"`
	Bool       bool                   `json:"bool"`
	Int        int                    `json:"int"`
	Small      int8                   `json:"small"`
	Long       int64                  `json:"long"`
	Unsigned   uint16                 `json:"unsigned"`
	Huge       uint64                 `json:"huge"`
	Float      float64                `json:"float"`
	Single     float32                `json:"single"`
	Pointer    *string                `json:"pointer"`
	Self       *allKinds              `json:"self"`
	Selves     []allKinds             `json:"selves"`
	Bytes      []byte                 `json:"bytes"`
	Texts      []string               `json:"texts"`
	Matrix     [][]int32              `json:"matrix"`
	Map        map[string]string      `json:"map"`
	Structs    map[string]embedded    `json:"structs"`
	Quantities corev1.ResourceList    `json:"quantities"`
	Blobs      map[string][]byte      `json:"blobs"`
	Numbers    map[int]string         `json:"numbers"`
	Any        any                    `json:"any"`
	AnyMap     map[string]any         `json:"anyMap"`
	Array      [2]int                 `json:"array"`
	Raw        runtime.RawExtension   `json:"raw"`
	Port       intstr.IntOrString     `json:"port"`
	Amount     resource.Quantity      `json:"amount"`
	When       metav1.Time            `json:"when"`
	Micro      *metav1.MicroTime      `json:"micro"`
	Span       metav1.Duration        `json:"span"`
	Clock      time.Time              `json:"clock"`
	Untagged   string
	hidden     string //lint:ignore U1000 it is not exported, and is not decoded
	Ignored    string `json:"-"`
}

type embedded struct {
	Inner string `json:"inner"`
	Text  string `json:"text"` // hidden by allKinds.Text
}

// quoting has an option that changes the encoding of a field.
type quoting struct {
	Number int `json:"number,string"`
}

// ambiguous has two fields with the same name, which encoding/json ignores.
type ambiguous struct {
	First
	Second
}

// First has a field in common with Second.
type First struct{ Twice string }

// Second has a field in common with First.
type Second struct{ Twice string }

// TestDecode compares results and errors with sigs.k8s.io/json.
func TestDecode(t *testing.T) {
	values := map[string][]string{
		"text": {`"a"`, `""`, `"\u00e9\n\"x"`, `"é"`, `null`, `1`, `"` + strings.Repeat("long ", 40) +
			`"`, "\"\xff\""},
		"named": {`"True"`},
		"bool":  {`true`, `false`, `null`, `"true"`},
		"int": {`1`, `-7`, `0`, `-0`, `1.0`, `1e3`, `9223372036854775807`,
			`9223372036854775808`, `null`},
		"small":    {`127`, `-128`, `128`},
		"long":     {`9007199254740993`},
		"unsigned": {`65535`, `65536`, `-1`, `-0`},
		"huge":     {`18446744073709551615`, `18446744073709551616`},
		"float":    {`1`, `1.5`, `-2e10`, `1e400`, `null`, `"1"`},
		"single":   {`3.4e38`, `3.5e38`, `0.1`},
		"pointer":  {`"p"`, `null`, `1`},
		"self":     {`{"text":"inside","self":{"int":3}}`, `null`, `[]`, `{}`},
		"selves":   {`[{"text":"1"},{"text":"2"},{"self":null}]`, `[]`, `null`, `[null,{}]`, `{}`},
		"bytes":    {`"aGVsbG8="`, `""`, `"aGVsbG8"`, `null`, `[1,2]`, `"\u0061GVsbG8="`},
		"texts":    {`["a","b","c","d","e","f"]`, `[]`, `[null,"x"]`, `["a",1]`},
		"matrix":   {`[[1,2],[],null,[3]]`, `[[1],[2],[3],[4],[5],[6],[7]]`},
		"map": {`{"a":"b","":"empty"}`, `{}`, `null`, `{"a":"1","a":"2"}`, `{"\u0061":"x"}`,
			`{"a":null}`, `{"a":1}`},
		"structs":    {`{"a":{"inner":"x"},"b":null}`, `{}`, `{"a":{"inner":"x"},"a":{"text":"y"}}`},
		"quantities": {`{"cpu":"100m","memory":1}`, `{"cpu":"many"}`},
		"blobs":      {`{"a":"aGVsbG8=","b":null}`},
		"numbers":    {`{"1":"one"}`, `{"x":"one"}`},
		"any":        {`1`, `1.0`, `9223372036854775808`, `"s"`, `{"a":[1,2.5,null]}`, `null`},
		"anyMap":     {`{"a":1,"b":{"c":[true]}}`, `{}`},
		"array":      {`[1,2]`, `[1]`, `[1,2,3]`},
		"raw":        {`{"a": 1}`, `null`, `"x"`},
		"port":       {`80`, `"http"`, `true`},
		"amount":     {`"1Gi"`, `5`, `"x"`, `null`},
		"when": {`"2026-11-22T07:00:00Z"`, `"2026-02-29T07:00:00Z"`, `"2024-02-29T23:59:59Z"`,
			`"2026-11-22T07:00:00+02:00"`, `"2026-13-01T00:00:00Z"`, `"2026-11-22T24:00:00Z"`,
			`"0000-01-01T00:00:00Z"`, `null`, `"now"`, `5`},
		"micro": {`"2026-11-22T07:00:00.123456Z"`, `null`},
		"span":  {`"1h30m0s"`, `5`, `"1h"`, `"long"`, `""`, `null`, `"1\u0068"`},
		"clock": {`"2026-11-22T07:00:00.5Z"`, `"x"`},
		"metadata": {
			`{"name":"a","labels":{"x":"y"},"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}},"time":"2026-11-22T07:00:00Z"}],"deletionTimestamp":null}`},
		"kind":      {`"Everything"`, `5`},
		"inner":     {`"deep"`},
		"Untagged":  {`"u"`},
		"untagged":  {`"another case"`},
		"hidden":    {`"h"`},
		"Ignored":   {`"i"`},
		"-":         {`"dash"`},
		"unknown":   {`{"deep":[1,{"er":"\\\""}]}`, `"x"`, `null`},
		`te\u0078t`: {`"escaped key"`},
	}
	var texts []string
	for key, all := range values {
		for _, value := range all {
			texts = append(texts, fmt.Sprintf(`{%q:%s}`, key, value),
				fmt.Sprintf("{ \"text\" : \"before\" ,\n\t%q : %s , \"int\" : 5 }", key, value))
		}
	}
	texts = append(texts, `{}`, ` { } `, `null`, `{"text":"a","text":"b"}`,
		`{"self":{"text":"a"},"self":{"int":1}}`, `[]`, `"x"`)
	for _, text := range texts {
		text = strings.ReplaceAll(text, `\\u`, `\u`)
		compare[allKinds](t, text)
	}
	for _, text := range []string{`{"number":"5"}`, `{"number":5}`} {
		compare[quoting](t, text)
	}
	for _, text := range []string{`{"Twice":"x"}`, `{}`} {
		compare[ambiguous](t, text)
	}
}

// Recursive types, with and without a struct in between.
type (
	tree    []tree
	paths   map[string]paths
	chain   *chain
	rules   map[string][]ruleSet
	ruleSet struct {
		And  rules     `json:"and"`
		Or   []ruleSet `json:"or"`
		Name string    `json:"name"`
	}
	recursive struct {
		Tree  tree              `json:"tree"`
		Trees map[string][]tree `json:"trees"`
		Paths paths             `json:"paths"`
		Chain chain             `json:"chain"`
		Rules rules             `json:"rules"`
	}
)

// TestRecursiveTypes verifies that recursive types are decoded as by sigs.k8s.io/json.
func TestRecursiveTypes(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"tree":[[],[[]],null]}`, `{"tree":[1]}`, `{"trees":{"a":[[[]],null]}}`,
		`{"paths":{"a":{"b":{}},"c":null}}`, `{"chain":null}`,
		`{"rules":{"a":[{"name":"x","or":[{"name":"y","and":{"b":[]}}]}]}}`,
	} {
		compare[recursive](t, text)
	}
}

// retainingUnmarshaler retains the JSON passed to UnmarshalJSON, which is not allowed.
type retainingUnmarshaler struct{ json []byte }

func (r *retainingUnmarshaler) UnmarshalJSON(json []byte) error {
	r.json = json
	return nil
}

// TestUnmarshalersGetCopies verifies that UnmarshalJSON gets a copy. A type may retain it, but the memory of
// the data may be reused.
func TestUnmarshalersGetCopies(t *testing.T) {
	type holder struct {
		Plain retainingUnmarshaler    `json:"plain"`
		Array [1]retainingUnmarshaler `json:"array"`
		Count int                     `json:"count"`
	}
	for field, text := range map[string]string{
		"compiled": `{"plain":"text","array":["text"]}`,
		"general":  `{"plain":"text","array":["text"],"count":2,"count":3}`,
	} {
		var got holder
		data := []byte(text)
		if err := DecoderFor(reflect.TypeFor[holder]()).Decode(data, reflect.ValueOf(&got)); err != nil {
			t.Fatal(err)
		}
		clear(data)
		if string(got.Plain.json) != `"text"` || string(got.Array[0].json) != `"text"` {
			t.Errorf("%s: the retained JSON changed to %q, %q", field, got.Plain.json, got.Array[0].json)
		}
	}
}

// TestObjectsShareNoMemory verifies that objects decoded one after the other stay unchanged, although their
// strings and times share memory.
func TestObjectsShareNoMemory(t *testing.T) {
	type listed struct {
		Names []string          `json:"names"`
		Words map[string]string `json:"words"`
		At    *metav1.Time      `json:"at"`
	}
	text := func(k int) string {
		names := make([]string, k%11)
		for n := range names {
			names[n] = strings.Repeat("x", k%(n+60)) + fmt.Sprint(k)
		}
		quoted, err := stdjson.Marshal(names)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"names":%s,"words":{"key-%d":"\u0061%d","other":"é"},"at":"2026-11-%02dT07:00:00Z"}`,
			quoted, k, k, 1+k%30)
	}
	const objects = 500
	decoder := DecoderFor(reflect.TypeFor[listed]())
	var got [objects]listed
	for k := range got {
		if err := decoder.Decode([]byte(text(k)), reflect.ValueOf(&got[k])); err != nil {
			t.Fatal(err)
		}
	}
	for k := range got {
		var want listed
		if err := json.UnmarshalCaseSensitivePreserveInts([]byte(text(k)), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, got[k]) {
			t.Fatalf("%d (-want +got):\n%s", k, cmp.Diff(want, got[k]))
		}
	}
}

// TestTimes verifies that valid and invalid times, also in notations that API servers do not write, are
// decoded as by sigs.k8s.io/json.
func TestTimes(t *testing.T) {
	for _, text := range []string{"2026-11-20T10:20:30Z", "0000-02-29T23:59:59Z", "1900-02-29T00:00:00Z",
		"2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-01T24:00:00Z",
		"2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "2026-01-01t00:00:00z", "2026-01-01T1:00:00.0Z",
		"2026-01-01T00:00:00+02:00", "2026-01-01T00:00:00.123Z", "2026-01-01T00:00:00,123Z", "2026-01-01", ""} {
		compare[struct{ At metav1.Time }](t, `{"At":"`+text+`"}`)
		compare[struct{ At *metav1.Time }](t, `{"At":"`+text+`"}`)
	}
}

// compare decodes twice, because the order of keys is known the second time.
func compare[T any](t *testing.T, text string) {
	t.Helper()
	var want T
	wantErr := json.UnmarshalCaseSensitivePreserveInts([]byte(text), &want)
	for range 2 {
		var got T
		data := []byte(text)
		err := DecoderFor(reflect.TypeFor[T]()).Decode(data, reflect.ValueOf(&got))
		clear(data) // out must not alias the data
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%s: %v; sigs.k8s.io/json: %v", text, err, wantErr)
			return
		}
		if wantErr == nil && !reflect.DeepEqual(want, got) {
			t.Errorf("%s (-want +got):\n%s", text,
				cmp.Diff(fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", got)))
			return
		}
	}
}

// TestTypesAreCompiled verifies that the types of apimachinery and of the core group are decoded without the
// general decoder.
func TestTypesAreCompiled(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[corev1.Pod](),
		reflect.TypeFor[metav1.PartialObjectMetadata](), reflect.TypeFor[allKinds]()} {
		c := newCompiler()
		c.codec(typ)
		for inner, s := range c.structs {
			if s.fallback != nil {
				t.Errorf("%s: the field type %s needs the general decoder", typ, inner)
			}
		}
	}
}

// TestDecodeStops verifies that decoding stops after the last field of the outermost struct, not of nested
// ones.
func TestDecodeStops(t *testing.T) {
	var partial metav1.PartialObjectMetadata
	text := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u","controller":true,"blockOwnerDeletion":true,"other":1}],"uid":"b"},"spec":never read`
	if err := DecoderFor(reflect.TypeFor[metav1.PartialObjectMetadata]()).Decode([]byte(text),
		reflect.ValueOf(&partial)); err != nil {
		t.Fatal(err)
	}
	if partial.Kind != "Pod" || partial.UID != "b" || len(partial.OwnerReferences) != 1 {
		t.Errorf("decoded %+v, want the kind, the UID and one owner reference", partial)
	}
	type node struct {
		Inner *node  `json:"inner"`
		Name  string `json:"name"`
	}
	compare[node](
		t, `{"inner":{"inner":{"inner":null,"name":"c"},"name":"b","more":1},"name":"a","after":{}}`)
}

// FuzzDecode compares results with sigs.k8s.io/json.
func FuzzDecode(f *testing.F) {
	f.Add(`{"text":"a","int":1,"self":{"texts":["x"]},"map":{"a":"b"},"when":"2026-11-22T07:00:00Z"}`)
	f.Add(`{"metadata":{"name":"a","labels":{"x":"\u00e9"}},"selves":[{},{"any":1.5}],"bytes":"aGk="}`)
	f.Add(`{"amount":"1Gi","port":80,"raw":{"a":1},"structs":{"a":{"inner":"x"}},"array":[1,2]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		if json.UnmarshalCaseSensitivePreserveInts([]byte(text), &value) != nil {
			return // caches store only valid JSON
		}
		compare[allKinds](t, text)
	})
}

// podJSON is a pod as an API server sends it.
const podJSON = `{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"2026-11-22T07:00:00Z","generateName":"web-5d4f8c7b9-","labels":{"app":"web","pod-template-hash":"5d4f8c7b9"},"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"0f1b3c1e\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{".":{},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}}}},"f:dnsPolicy":{},"f:restartPolicy":{}}},"manager":"kube-controller-manager","operation":"Update","time":"2026-11-22T07:00:00Z"}],"name":"web-5d4f8c7b9-x2x8z","namespace":"production","ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":"web-5d4f8c7b9","uid":"0f1b3c1e-7f8e-4c1a-9a57-2d1c0f5f0c11"}],"resourceVersion":"123456","uid":"3b5f0ad0-6a4f-4a45-9d59-6b8c9f7b9a10"},"spec":{"containers":[{"env":[{"name":"MODE","value":"production"}],"image":"registry.example.com/web:1.2.3","imagePullPolicy":"IfNotPresent","name":"web","ports":[{"containerPort":8080,"protocol":"TCP"}],"resources":{"requests":{"cpu":"100m","memory":"128Mi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-abcde","readOnly":true}]}],"dnsPolicy":"ClusterFirst","nodeName":"node-17","restartPolicy":"Always","schedulerName":"default-scheduler","serviceAccountName":"default","terminationGracePeriodSeconds":30,"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300}]},"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"2026-11-22T07:00:01Z","status":"True","type":"Ready"},{"lastProbeTime":null,"lastTransitionTime":"2026-11-22T07:00:00Z","status":"True","type":"PodScheduled"}],"hostIP":"10.0.0.17","phase":"Running","podIP":"10.1.2.3","qosClass":"Burstable","startTime":"2026-11-22T07:00:00Z"}}`

func TestPodUsesNoFallback(t *testing.T) {
	compare[corev1.Pod](t, podJSON)
	compare[metav1.PartialObjectMetadata](t, podJSON)
	doc := document{data: []byte(podJSON)}
	var pod corev1.Pod
	if end := DecoderFor(reflect.TypeFor[corev1.Pod]()).codec(&doc, 0,
		reflect.ValueOf(&pod).UnsafePointer()); end != len(podJSON) {
		t.Errorf("the codec stopped at %d, so a typical pod needs the general decoder", end)
	}
}

// BenchmarkDecode compares this package, sigs.k8s.io/json, and copying a decoded object.
func BenchmarkDecode(b *testing.B) {
	data := []byte(podJSON)
	var pod corev1.Pod
	decoder := DecoderFor(reflect.TypeFor[corev1.Pod]())
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pod = corev1.Pod{}
			if err := decoder.Decode(data, reflect.ValueOf(&pod)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pod = corev1.Pod{}
			if err := json.UnmarshalCaseSensitivePreserveInts(data, &pod); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.ReportAllocs()
		var out corev1.Pod
		for b.Loop() {
			pod.DeepCopyInto(&out)
		}
	})
}
