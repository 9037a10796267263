package answers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// Server is the compared server.
type Server struct {
	Name   string
	Config *rest.Config
	// IntendedDifferences are the differences that Compare expects.
	IntendedDifferences []Difference
}

// Difference is an intended difference from the answers of a kube-apiserver.
type Difference struct {
	// Why is the reason.
	Why string
	// Writes selects questions that write. Otherwise the difference applies to reads.
	Writes bool
	// Path matches the paths of these questions, without parameters.
	Path *regexp.Regexp
	// Query matches their parameters. Nil matches any.
	Query *regexp.Regexp
	// Code is the expected status code. The body must contain ExpectedText.
	Code         int
	ExpectedText string
}

func (d Difference) appliesTo(q Question) bool {
	path, query, _ := strings.Cut(q.Path, "?")
	return d.Writes == q.Writes() && d.Path.MatchString(path) &&
		(d.Query == nil || d.Query.MatchString(query))
}

// FutureWatches is the difference for a watch from a version that the API server has not reached. The API
// server accepts such a watch and sends nothing. A cache rejects it.
var FutureWatches = Difference{
	Why:          "a watch from a version that the restored backup lacks gets 410",
	Code:         http.StatusGone,
	Path:         regexp.MustCompile("/workloads$"),
	Query:        regexp.MustCompile("^watch=true&.*resourceVersion=9223372036854775808"),
	ExpectedText: "it was restored from an older backup",
}

// problem describes how an answer violates the difference.
func (d Difference) problem(q Question, got Answer) string {
	if got.Code == d.Code && (strings.Contains(got.Body, d.ExpectedText) || q.Method == http.MethodHead) {
		return ""
	}
	return fmt.Sprintf("%s: the answer is %d, %s; want %d, %q", d.Why, got.Code, got.Body, d.Code, d.ExpectedText)
}

// maxConcurrentRequests limits the concurrent requests to each server. Most of them wait for the end of a
// watch.
const maxConcurrentRequests = 64

// Compare compares the answers of a server with those of a real API server.
func Compare(t *testing.T, real *rest.Config, s Server, questions []Question) {
	t.Helper()
	realPlaceholders, serverPlaceholders := placeholders(t, real), placeholders(t, s.Config)
	compare := func(q Question) string {
		want := q.start(t, real, realPlaceholders)
		got := q.start(t, s.Config, serverPlaceholders)
		found := s.problems(t, q, <-want, <-got)
		if found == "" {
			return ""
		}
		return fmt.Sprintf("%s: %s %s (%s):\n%s", s.Name, q.Method, q.Path, q.Accept, found)
	}
	slots := make(chan struct{}, maxConcurrentRequests)
	var asking sync.WaitGroup
	var again struct {
		sync.Mutex
		questions []Question
	}
	for _, q := range questions {
		slots <- struct{}{}
		asking.Go(func() { // ends when both servers have answered
			defer func() { <-slots }()
			problem := compare(q)
			switch {
			case problem == "":
			case q.isShortWatch():
				again.Lock()
				defer again.Unlock()
				again.questions = append(again.questions, q)
			default:
				t.Error(problem)
			}
		})
	}
	asking.Wait()
	for _, q := range again.questions {
		problem := compare(q)
		for try := 1; try < maxTries && problem != ""; try++ {
			problem = compare(q)
		}
		if problem != "" {
			t.Error(problem)
		}
	}
}

// maxTries limits the repetitions of a watch that differed. Each repetition runs alone, because a busy server
// may not send all events within the second that a watch lasts. A real difference is permanent.
const maxTries = 5

// isShortWatch reports whether the question is a watch of one second.
func (q Question) isShortWatch() bool { return strings.Contains(q.Path, "timeoutSeconds=1") }

type outcome struct {
	Answer
	error
}

// start sends the request, and returns a channel that receives the answer.
func (q Question) start(t *testing.T, config *rest.Config, fill *strings.Replacer) <-chan outcome {
	header := http.Header{}
	if q.Accept != "" {
		header.Set("Accept", q.Accept)
	}
	answered := make(chan outcome, 1)
	go func() { // ends with the answer
		answer, err := ask(t.Context(), config, q.Method, fill.Replace(q.Path), header)
		answered <- outcome{answer, err}
	}()
	return answered
}

// problems describes the differences between two answers.
func (s Server) problems(t *testing.T, q Question, want, got outcome) string {
	t.Helper()
	if err := errors.Join(want.error, got.error); err != nil {
		return err.Error()
	}
	found := differences(t, want.Answer, got.Answer)
	for _, d := range s.IntendedDifferences {
		switch {
		case !d.appliesTo(q):
		case found == "":
			return fmt.Sprintf("the servers agree: remove the difference (%s)", d.Why)
		default:
			return d.problem(q, got.Answer)
		}
	}
	return found
}

// placeholders returns the values of the placeholders in paths.
func placeholders(t *testing.T, config *rest.Config) *strings.Replacer {
	t.Helper()
	var list struct {
		Metadata struct{ Continue, ResourceVersion string }
	}
	text := Ask(t, config, http.MethodGet, groupPath+"workloads?limit=2", http.Header{}).Body
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return strings.NewReplacer("NOW", list.Metadata.ResourceVersion, "TOKEN", list.Metadata.Continue)
}

// withoutProtobuf removes the Protobuf media types from a response. kube-apiserver lists them, but readapi
// does not serve them.
var withoutProtobuf = strings.NewReplacer(", application/vnd.kubernetes.protobuf;stream=watch", "",
	", application/vnd.kubernetes.protobuf", "")

func differences(t *testing.T, want, got Answer) string {
	t.Helper()
	var problems []string
	note := func(subject, diff string) {
		if diff != "" {
			problems = append(problems, subject+" (-want +got): "+diff)
		}
	}
	note("code", cmp.Diff(want.Code, got.Code))
	for _, name := range []string{"Content-Type", "Retry-After", "Warning", "Cache-Control",
		"X-Content-Type-Options"} {
		note(name, cmp.Diff(want.Header.Get(name), got.Header.Get(name)))
	}
	var err error
	if want, err = want.fromYAML(); err != nil {
		return err.Error()
	}
	if got, err = got.fromYAML(); err != nil {
		return err.Error()
	}
	const event = `{"type":`
	if strings.HasPrefix(want.Body, event) || strings.HasPrefix(got.Body, event) {
		note("events", cmp.Diff(Events(t, want.Body), Events(t, got.Body)))
	} else {
		note("body", cmp.Diff(Comparable(withoutProtobuf.Replace(want.Body)),
			Comparable(withoutProtobuf.Replace(got.Body))))
	}
	return strings.Join(problems, "\n")
}
