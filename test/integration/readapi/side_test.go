package readapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// testedServer is one of the two servers with a record of its answers. Both sides have the same record,
// except UIDs and versions.
type testedServer struct {
	base   string
	client *http.Client
	// states has the past states of each object, by path.
	states map[string][]map[string]any
	// tokens replaces UIDs and resource versions by the order of their appearance.
	tokens     map[string]string
	tokenCount int
}

func newTestedServer(t *testing.T, config *rest.Config) *testedServer {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	return &testedServer{base: config.Host, client: client, states: map[string][]map[string]any{},
		tokens: map[string]string{}}
}

// request is a request for both sides. Placeholders stand for values that only one side knows.
type request struct {
	method, path, query, media string
	body                       any // a string is sent unchanged
}

// answer is the part of a response that both sides must share.
type answer struct {
	Code     int
	Warnings []string
	Body     any
}

// send sends a request and records the state of the returned object.
func (s *testedServer) send(ctx context.Context, r request) (answer, error) {
	var body io.Reader
	switch content := r.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(content)
	default:
		data, err := json.Marshal(content)
		if err != nil {
			return answer{}, err
		}
		body = bytes.NewReader(data)
	}
	q, err := http.NewRequestWithContext(ctx, r.method, s.base+r.path+"?"+r.query, body)
	if err != nil {
		return answer{}, err
	}
	q.Header.Set("Accept", "application/json")
	if body != nil {
		q.Header.Set("Content-Type", r.media)
	}
	response, err := s.client.Do(q)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{Code: response.StatusCode, Warnings: response.Header.Values("Warning")}
	var content map[string]any
	if json.Unmarshal(data, &content) != nil {
		a.Body = string(data)
		return a, nil
	}
	if content["kind"] != "Status" && content["items"] == nil && !strings.Contains(r.query, "dryRun") {
		s.recordState(content)
	}
	// A kube-apiserver omits the kind of built-in types in list items.
	items, isList := content["items"].([]any)
	if isList {
		metadata := content["metadata"].(map[string]any)
		metadata["resourceVersion"] = "" // the version of the whole server
		if metadata["continue"] != nil {
			metadata["continue"] = metadata["continue"] != ""
		}
	}
	for _, item := range items {
		delete(item.(map[string]any), "apiVersion")
		delete(item.(map[string]any), "kind")
	}
	if a.Code == http.StatusUnsupportedMediaType { // the servers accept different types
		delete(content, "message")
		delete(content, "details")
	}
	if details, ok := content["details"].(map[string]any); ok { // a kube-apiserver repeats some causes
		causes, _ := details["causes"].([]any)
		slices.SortStableFunc(causes,
			func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		if details["causes"] = slices.CompactFunc(causes,
			func(a, b any) bool { return reflect.DeepEqual(a, b) }); len(causes) == 0 {
			delete(details, "causes")
		}
	}
	a.Body = s.mask(content)
	return a, nil
}

// recordState records the state of an object.
func (s *testedServer) recordState(content map[string]any) {
	metadata, _ := content["metadata"].(map[string]any)
	key := fmt.Sprint(content["kind"], "/", metadata["name"])
	if states := s.states[key]; len(states) > 0 &&
		s.differsOnlyInManagedFields(states[len(states)-1], content) {
		s.states[key] = states[:len(states)-1]
	}
	s.states[key] = append(s.states[key], content)
}

// differsOnlyInManagedFields reports whether two states differ only in managedFields. A real server counts
// that as a change, so both get the same token for their versions.
func (s *testedServer) differsOnlyInManagedFields(before, after map[string]any) bool {
	was, is := before["metadata"].(map[string]any), after["metadata"].(map[string]any)
	old, _ := was["resourceVersion"].(string)
	version, _ := is["resourceVersion"].(string)
	if old == version || was["uid"] != is["uid"] {
		return false
	}
	again := deepCopy(after)
	again["metadata"].(map[string]any)["resourceVersion"] = old
	if !reflect.DeepEqual(s.mask(deepCopy(before)), s.mask(again)) {
		return false
	}
	s.tokens["resourceVersion "+version] = s.token("resourceVersion", old)
	return true
}

// earlierState returns an earlier state of an object, or nil. The caller may change it.
func (s *testedServer) earlierState(kind, name string, age int) map[string]any {
	states := s.states[kind+"/"+name]
	if len(states) == 0 {
		return nil
	}
	return deepCopy(states[max(0, len(states)-1-age)])
}

func deepCopy(content map[string]any) map[string]any {
	data, err := json.Marshal(content)
	var again map[string]any
	if err == nil {
		err = json.Unmarshal(data, &again)
	}
	if err != nil {
		panic(err) // it has just been decoded
	}
	return again
}

// mask replaces values that servers generate by tokens, and removes managedFields.
func (s *testedServer) mask(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			element := v[name]
			switch name {
			case "managedFields":
				continue
			case "uid", "resourceVersion":
				if text, ok := element.(string); ok {
					out[name] = s.token(name, text)
					continue
				}
			}
			out[name] = s.mask(element)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = s.mask(element)
		}
		return out
	case string:
		return s.maskText(v)
	}
	return value
}

var (
	uidForm     = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	versionForm = regexp.MustCompile(`\(\d+\)`)
	storageForm = regexp.MustCompile(`: StorageError: .*, AdditionalErrorMsg`)
	patchedForm = regexp.MustCompile(`["']\{\\?"apiVersion.*\}["']`)
	suffixForm  = regexp.MustCompile(`\bgen-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
)

func (s *testedServer) maskText(text string) string {
	if at, err := time.Parse(time.RFC3339, text); err == nil && time.Since(at).Abs() < time.Hour {
		return "NOW"
	}
	text = uidForm.ReplaceAllStringFunc(text, func(uid string) string { return s.token("uid", uid) })
	text = strings.ReplaceAll(text,
		"error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
		"json: cannot unmarshal object into Go value of type jsonpatch.Patch")
	// Hide storage versions and Go types.
	text = strings.ReplaceAll(storageForm.ReplaceAllString(text, ""), "ObjectMeta.metadata.", "ObjectMeta.")
	text, _, _ = strings.Cut(text, ", application/apply-patch") // not supported by testcluster
	text = patchedForm.ReplaceAllString(text, "PATCHED")
	text = suffixForm.ReplaceAllString(text, "gen-SUFFIX")
	return versionForm.ReplaceAllStringFunc(text, func(match string) string {
		return "(" + s.token("resourceVersion", strings.Trim(match, "()")) + ")"
	})
}

// token returns the token for a UID or version.
func (s *testedServer) token(kind, text string) string {
	if len(text) < 2 || kind == "uid" && !uidForm.MatchString(text) {
		return text // the client has set the value
	}
	key := kind + " " + text
	if s.tokens[key] == "" {
		s.tokenCount++
		s.tokens[key] = fmt.Sprintf("%s-%d", kind, s.tokenCount)
	}
	return s.tokens[key]
}
