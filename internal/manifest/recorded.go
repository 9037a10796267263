package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/naming"
)

// Note is the Err of an entry about a type, not about an object.
type Note struct {
	// APIVersion and Kind are set for an empty list of objects of this kind.
	APIVersion, Kind string
	// Uncollected is the type that a tool could not read, by the name that the tool uses, such as "pvcs", or
	// the name of a CustomResourceDefinition.
	Uncollected string
	Reason      string
}

func (n *Note) Error() string {
	if n.Uncollected != "" {
		return fmt.Sprintf("%s were not collected: %s", n.Uncollected, n.Reason)
	}
	return "an empty list of " + n.Kind
}

// layouts match the files that have objects of one type, by their layouts in docs/bundles.md: the type is the
// last group, after its API group in those of oc.
var layouts = []*regexp.Regexp{
	regexp.MustCompile(`/cluster-resources/(?:custom-resources/)?()([^/]+?)(?:\.json|/.*\.json)$`),
	regexp.MustCompile(`/resources/(?:ns/[^/]+|cluster)/()(?:.*_)?([^/_]+)\.json$`),
	regexp.MustCompile(`/resources/()([^/]+)/(?:v[^/]+/)?(?:namespaces/[^/]+|cluster)/[^/]+\.json$`),
	regexp.MustCompile(`/namespaces/[^/]+/([^/]+)/([^/]+?)(?:\.yaml|/[^/]+\.yaml)$`),
	regexp.MustCompile(`/cluster-scoped-resources/([^/]+)/([^/]+?)(?:\.yaml|/[^/]+\.yaml)$`),
}

// collected returns the type whose objects a file of a bundle has, or the errors of collecting it. The name
// is empty for other files, such as the groups of a server.
func collected(file string) (name string, hasErrors bool) {
	file = "/" + filepath.ToSlash(file)
	if strings.HasSuffix(file, "/meta/query-time.json") {
		return queryTimes, true
	}
	base, isErrors := strings.CutSuffix(path.Base(file), "-errors.json")
	if isErrors && strings.Contains(file, "/cluster-resources/") {
		return base, true
	}
	for _, layout := range layouts {
		match := layout.FindStringSubmatch(file)
		if match == nil {
			continue
		}
		group, name := match[1], strings.ToLower(match[2])
		_, isBuiltin := naming.FindBuiltinByName(name)
		switch {
		case strings.Contains(group, "."):
			return name + "." + group, false
		case isBuiltin, strings.Contains(name, "."), strings.Contains(base, "_"):
			return name, false
		}
	}
	return "", false
}

// IsSortedByType reports whether a definition is in a bundle that does not show which types are empty.
func IsSortedByType(path string) bool {
	return strings.Contains(path, "apiextensions.k8s.io") && strings.Contains(path, "customresourcedefinitions")
}

const (
	customResources = "custom-resources"
	queryTimes      = "query-time"
	maxErrorsFile   = 1 << 20
	maxPlaces       = 5 // in a note
)

const errUnknownTypes = PartialError("objects of any type may be missing")

var typePattern = regexp.MustCompile(`^[a-z0-9.-]+$`)

// readErrors yields a note for each type with errors. They are texts, or texts by namespace. Those of custom
// resources have the names of the definitions. Sonobuoy writes a list of all queries.
func (c *contentReader) readErrors(in io.Reader, name string) error {
	text, err := io.ReadAll(io.LimitReader(in, maxErrorsFile))
	if err != nil {
		return err
	}
	var all []string
	byName := map[string]string{}
	var queries []struct {
		QueryObj, Namespace string
		Error               json.RawMessage
	}
	places := map[[2]string][]string{} // by type and cause
	add := func(name, cause, place string) {
		places[[2]string{name, cause}] = append(places[[2]string{name, cause}], place)
	}
	switch {
	case name == queryTimes:
		if err := json.Unmarshal(text, &queries); err != nil {
			add("Queries", err.Error(), "")
		}
		for _, q := range queries {
			name := strings.ToLower(q.QueryObj) // Nodes next to nodes are files of kubelets
			if isSet(q.Error) && (name == q.QueryObj || !bytes.Contains(text, quoted(name))) {
				add(name, string(q.Error), q.Namespace)
			}
		}
	case json.Unmarshal(text, &all) != nil && json.Unmarshal(text, &byName) != nil:
		all = []string{"its errors cannot be read"}
	}
	for _, cause := range all {
		add(name, cause, "")
	}
	for key, cause := range byName {
		if name == customResources {
			add(key, cause, "")
		} else {
			add(name, cause, key)
		}
	}
	compare := func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }
	for _, key := range slices.SortedFunc(maps.Keys(places), compare) {
		names := slices.Sorted(slices.Values(places[key]))
		if more := len(names) - maxPlaces; more > 0 {
			names = append(names[:maxPlaces], fmt.Sprintf("%d more", more))
		}
		reason := strings.TrimPrefix(strings.Join(names, ", ")+": "+key[1], ": ")
		err := error(&Note{Uncollected: key[0], Reason: reason})
		if key[0] == customResources || !typePattern.MatchString(key[0]) {
			err = fmt.Errorf("%w: %s: %s", errUnknownTypes, key[0], reason)
		}
		c.stopped = c.stopped || !c.yield(Entry{Position: Position{Member: c.member}, Err: err})
	}
	return nil
}

// beginArray sets the type of the objects that lack it, if it is known.
func (l *list) beginArray() {
	l.isArray = true
	if t, ok := naming.FindBuiltinByName(l.collects); ok && l.collects != "" {
		version := schema.GroupVersion{Group: t.Group, Version: t.Version}.String()
		l.members = []member{{"apiVersion", quoted(version)}, {"kind", quoted(t.Kind + "List")}}
	}
}

func quoted(text string) json.RawMessage { return fmt.Appendf(nil, "%q", text) }

// emitWatchEvent yields the object of a watch event.
func (l *list) emitWatchEvent() bool {
	e := Entry{Position: l.Position, Recorded: true}
	e.identify(l.fieldValue("object"))
	switch stringOf(l.fieldValue("type")) {
	case "BOOKMARK":
		return true
	case "ERROR":
		return l.yield(Entry{Position: l.Position,
			Err: fmt.Errorf("%w: the watch ended with an error: %.200s", ErrNotRead, e.Data)})
	case "DELETED":
		e.Deleted = true
	}
	return l.emit(e)
}

// isWatchEvent reports whether the document is a watch event.
func (l *list) isWatchEvent() bool {
	eventType := stringOf(l.fieldValue("type"))
	object := l.fieldValue("object")
	return len(l.members) == 2 && len(object) > 0 && object[0] == '{' &&
		slices.Contains([]string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"}, eventType)
}

// logStart begins the first line of a log that 'kubectl cluster-info dump' prints between objects.
var logStart = []byte("==== START logs for container ")

// skipLog skips the rest of a log after its first line. A log can end without a line break.
func (t *documentReader) skipLog(start []byte) error {
	end := bytes.Replace(start, []byte("START"), []byte("END"), 1)
	for {
		line, err := t.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if t.line++; err != nil || bytes.HasSuffix(line, end) {
			return err
		}
	}
}
