package filesource

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/crdcache/crdcache/internal/snapshot"
)

// Reasons returns why objects may be missing or old: of all types, or of the given ones of which some objects
// are known, because reads of the others are refused. The problems of files concern all types, and are last.
func (s *Source) Reasons(types ...schema.GroupResource) (reasons []snapshot.Reason) {
	reasons = s.collectedReasons(types)
	if s.snapshot != nil {
		reasons = s.snapshotReasons(types)
	}
	for _, p := range s.Problems() {
		if !p.Warning {
			reasons = append(reasons, snapshot.Reason{Text: p.Error()})
		}
	}
	return reasons
}

func (s *Source) snapshotReasons(types []schema.GroupResource) (reasons []snapshot.Reason) {
	for _, r := range s.snapshot.Contents().Incomplete {
		objects := s.snapshot.Objects(schema.ParseGroupResource(r.Type))
		isRefused := len(types) > 0 && objects != nil && objects.Type().Missing != nil
		if r.Type != "" && r.Concerns(types...) && !isRefused { // serveSnapshot reports those of all types
			reasons = append(reasons, r)
		}
	}
	return reasons
}

func (s *Source) collectedReasons(types []schema.GroupResource) (reasons []snapshot.Reason) {
	s.reading.Lock()
	defer s.reading.Unlock()
	l := s.reading.loader
	if l == nil {
		return nil
	}
	wanted := types
	if len(types) == 0 {
		wanted = slices.AppendSeq(slices.Collect(maps.Keys(l.uncollected)), maps.Keys(l.definedIn))
	}
	for _, gr := range wanted {
		text := l.reasonOf(gr)
		if text == "" || gr.Group == anyGroup || len(types) > 0 && !s.hasObjects(gr) {
			continue
		}
		reasons = append(reasons, snapshot.Reason{Type: gr.String(),
			Text: fmt.Sprintf("not all %s were collected: %s", gr, text)})
	}
	slices.SortFunc(reasons, func(a, b snapshot.Reason) int { return strings.Compare(a.Type, b.Type) })
	return slices.Compact(reasons)
}

func (s *Source) hasObjects(gr schema.GroupResource) bool {
	counts, _ := s.storage.Versions(gr)
	return len(counts) > 0
}

// reasonAgent is the agent of warnings about incomplete answers. The type follows it.
const reasonAgent = "crdcache-incomplete:"

// maxReasons and maxReasonText bound the headers of a response, because clients do.
const maxReasons, maxReasonText = 64, 8 << 10

// sendReasons adds reasons to the header of a response. kubectl prints those with code 299.
func sendReasons(header http.Header, code int, reasons []snapshot.Reason) {
	if rest := len(reasons) - maxReasons; rest > 0 {
		reasons = append(reasons[:maxReasons], snapshot.Reason{Text: fmt.Sprintf("%d more types or files are incomplete", rest)})
	}
	for _, r := range reasons {
		text := strings.Join(strings.Fields(r.Text), " ")
		header.Add("Warning", fmt.Sprintf("%d %s%s %.*q", code, reasonAgent, r.Type, maxReasonText/len(reasons), text))
	}
}

// TakeReasons moves the reasons from the header of a response to its result.
func TakeReasons(header http.Header) (reasons []snapshot.Reason) {
	warnings, _ := utilnet.ParseWarningHeaders(header["Warning"]) // clients ignore invalid ones
	header.Del("Warning")
	for _, w := range warnings {
		if typeName, isReason := strings.CutPrefix(w.Agent, reasonAgent); isReason {
			reasons = append(reasons, snapshot.Reason{Type: typeName, Text: w.Text})
		} else if text, err := utilnet.NewWarningHeader(w.Code, w.Agent, w.Text); err == nil {
			header.Add("Warning", text)
		}
	}
	return reasons
}
