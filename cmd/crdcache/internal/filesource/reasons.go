package filesource

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/snapshot"
)

// Reasons returns why objects of the given types, or of all types, may be missing or old. The problems of
// files concern all types, and are last.
func (s *Source) Reasons(types ...schema.GroupResource) (reasons []snapshot.Reason) {
	var all []snapshot.Reason
	if s.snapshot != nil {
		all = s.snapshot.Contents().Incomplete
	} else {
		all = s.collectedReasons()
	}
	for _, r := range all {
		if r.Type != "" && r.Concerns(types...) { // serveSnapshot reports those of all types
			reasons = append(reasons, r)
		}
	}
	for _, p := range s.Problems() {
		if !p.Warning {
			reasons = append(reasons, snapshot.Reason{Text: p.Error()})
		}
	}
	return reasons
}

// collectedReasons returns why objects of types may be missing, sorted by type.
func (s *Source) collectedReasons() (reasons []snapshot.Reason) {
	s.reading.Lock()
	defer s.reading.Unlock()
	l := s.reading.loader
	types := slices.AppendSeq(slices.Collect(maps.Keys(l.uncollected)), maps.Keys(l.definedIn))
	for _, k := range l.kinds { // the kind of a name of any group
		if l.uncollected[schema.GroupResource{Group: anyGroup, Resource: k.typ.Names.Plural}] != nil {
			types = append(types, k.typ.GroupResource())
		}
	}
	for _, gr := range types {
		text := l.reasonOf(gr, s.storage.HasObjects(gr))
		isNamed := func(o schema.GroupResource) bool { return o != gr && o.Resource == gr.Resource }
		if text != "" && (gr.Group != anyGroup || !slices.ContainsFunc(types, isNamed)) {
			reasons = append(reasons, snapshot.Reason{Type: gr.String(), Text: text})
		}
	}
	slices.SortFunc(reasons, func(a, b snapshot.Reason) int { return strings.Compare(a.Type, b.Type) })
	return slices.Compact(reasons)
}

const (
	// WarningPrefix begins warnings about incomplete answers, which kubectl prints.
	WarningPrefix = "299 crdcache-incomplete "
	maxWarnings   = 8 // clients bound the header
	// ReasonsHeader is set in answers about the types of a source with Reasons, to ReasonsPath, whose answer
	// has the reasons in JSON.
	ReasonsHeader = "Crdcache-Reasons"
	ReasonsPath   = "/crdcache/reasons"
)

// announceReasons completes the header of an answer, about types if gr is empty.
func (s *Source) announceReasons(header http.Header, gr schema.GroupResource) {
	if gr.Empty() {
		if len(s.Reasons()) > 0 {
			header.Set(ReasonsHeader, ReasonsPath)
		}
		return
	}
	reasons := s.Reasons(gr)
	for _, r := range reasons[:min(len(reasons), maxWarnings)] {
		header.Add("Warning", WarningPrefix+fmt.Sprintf("%.999q", strings.Join(strings.Fields(r.Text), " ")))
	}
}
