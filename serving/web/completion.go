package web

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/naming"
)

const maxProposals = 20

type completeAnswer struct {
	// From and To delimit the text to replace, in UTF-16 code units.
	From      int        `json:"from"`
	To        int        `json:"to"`
	Proposals []proposal `json:"proposals"`
}

type proposal struct {
	Text string `json:"text"`
	// Note describes the proposal, or gives its number of objects.
	Note string `json:"note,omitempty"`
}

func (h *Handler) complete(r *http.Request) (any, error) {
	typ, err := h.requestedType(r)
	if err != nil {
		return nil, err
	}
	text := r.FormValue("query")
	if len(text) > maxQueryBytes {
		return completeAnswer{Proposals: []proposal{}}, nil
	}
	codeUnits := utf16.Encode([]rune(text))
	cursor, err := strconv.Atoi(cmp.Or(r.FormValue("at"), "-1"))
	if err != nil || cursor < 0 || cursor > len(codeUnits) {
		cursor = len(codeUnits)
	}
	position := positionAt(string(utf16.Decode(codeUnits[:cursor])))
	answer := completeAnswer{From: cursor - len(utf16.Encode([]rune(position.Word))), To: cursor,
		Proposals: []proposal{}}
	switch position.Kind {
	case completeCondition:
		answer.Proposals, err = h.conditionProposals(r, typ, position)
	case completeOperator:
		for _, i := range h.indexes(typ) {
			if i.Name == position.Index {
				answer.Proposals = append(answer.Proposals, operatorChoices(i.Sorted)...)
			}
		}
	case completeValue:
		answer.Proposals, err = h.proposedValues(r, typ, position)
	case completeConnective:
		answer.Proposals = []proposal{{"&& ", "and"}, {"|| ", "or"}}
	}
	return answer, err
}

func (h *Handler) conditionProposals(r *http.Request, typ *visibleType,
	position completionPosition) ([]proposal, error) {
	proposals := []proposal{}
	add := func(text, note string) {
		if strings.HasPrefix(strings.ToLower(text), strings.ToLower(position.Word)) &&
			len(proposals) < maxProposals {
			proposals = append(proposals, proposal{text, note})
		}
	}
	for _, i := range h.indexes(typ) {
		note := strings.Join(i.Types, " / ")
		if len(i.Parts) > 0 {
			note = strings.Join(i.Parts, " / ")
		}
		if i.Sorted {
			note = strings.TrimSpace(note + " sorted")
		}
		add(i.Name, strings.TrimSpace("index "+note))
	}
	add("label(", "a label selector")
	if h.hidesValues(typ) {
		return proposals, nil
	}
	add("where(", "a condition on fields")
	if h.requireAll(r) != nil {
		return proposals, nil
	}
	add("dangling()", "has a dangling reference")
	for _, reference := range typ.references {
		add("dangling("+reference.Name+")", "this reference dangles")
	}
	add("refersTo(", "objects that refer to an object")
	add("referredBy(", "objects that an object refers to")
	return proposals, nil
}

// proposedValues returns the values of an index that contain the typed text. The most frequent values come
// first.
func (h *Handler) proposedValues(r *http.Request, typ *visibleType,
	position completionPosition) ([]proposal, error) {
	counts, err := h.evaluator(typ).values(r.Context(), position.Index, query.All())
	if err != nil {
		return []proposal{}, nil // the index does not exist; the query reports the error
	}
	typedText := strings.ToLower(strings.Trim(position.Word, `"'`))
	counts = slices.DeleteFunc(counts,
		func(c query.ValueCount) bool { return !strings.Contains(strings.ToLower(valueText(c)), typedText) })
	slices.SortStableFunc(counts, func(a, b query.ValueCount) int { return cmp.Compare(b.Count, a.Count) })
	proposals := []proposal{}
	for _, c := range counts[:min(len(counts), maxProposals)] {
		_, valueCondition, _ := strings.Cut(conditionFor(position.Index, c.Parts), "=")
		proposals = append(proposals, proposal{valueCondition, naming.FormatCount(c.Count, "object")})
	}
	return proposals, nil
}
