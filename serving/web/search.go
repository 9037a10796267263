package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/serving/web/internal/outline"
)

const (
	maxSearchResults = 20
	// contentSearchTime limits the search in the content of objects, unless the request has "all".
	contentSearchTime = time.Second
	maxSnippetBytes   = 120
)

// searchAnswer has the best matches among names, values of indexes, and values in objects.
type searchAnswer struct {
	Names []foundName `json:"names"`
	// MoreNames is the number of other objects with matching names.
	MoreNames int            `json:"moreNames,omitempty"`
	Values    []foundValue   `json:"values"`
	Contents  []foundContent `json:"contents"`
	// Searched is the number of Objects whose content was searched. The search ends when it has enough
	// results.
	Searched int `json:"searched"`
	Objects  int `json:"objects"`
}

type foundName struct {
	Type string `json:"type"`
	Key  string `json:"key"`
}

// foundValue is a value of an index, with the query for its objects.
type foundValue struct {
	Type  string `json:"type"`
	Index string `json:"index"`
	valueCount
}

// foundContent is a value in an object.
type foundContent struct {
	Type string `json:"type"`
	Key  string `json:"key"`
	Path string `json:"path"`
	Text string `json:"text"`
}

// search finds a text in the visible objects of all types, or of one namespace.
type search struct {
	handler   *Handler
	ctx       context.Context
	text      string // in lower case
	namespace string
	types     []*visibleType
	answer    searchAnswer
}

func (h *Handler) search(r *http.Request) (any, error) {
	s := &search{handler: h, ctx: r.Context(), text: strings.ToLower(strings.TrimSpace(r.FormValue("text"))),
		namespace: r.FormValue("namespace")}
	s.answer = searchAnswer{Values: []foundValue{}, Contents: []foundContent{}}
	if s.text == "" || len(s.text) > maxSnippetBytes {
		return nil, errors.New("search for 1 to 120 bytes of text")
	}
	types, err := h.scopedTypes(r)
	if err != nil {
		return nil, err
	}
	s.types = slices.DeleteFunc(types, func(typ *visibleType) bool { return typ.scope.empty() })
	s.findNames()
	if err := s.findValues(); err != nil {
		return nil, err
	}
	s.findContents(time.Now().Add(contentSearchTime), r.FormValue("all") != "")
	return s.answer, context.Cause(r.Context())
}

func (s *search) isVisible(typ *visibleType, key string) bool {
	return typ.scope.allows(key) && (s.namespace == "" || strings.HasPrefix(key, s.namespace+"/"))
}

// findNames finds objects whose namespace and name contain all words. Equal names come first, then names that
// begin with the text.
func (s *search) findNames() {
	words := strings.Fields(s.text)
	var namesByRank [3][]foundName
	matchCount := 0
	for _, typ := range s.types {
		for key := range typ.informer.Snapshot().AllStored() {
			if s.ctx.Err() != nil || !s.isVisible(typ, key) {
				continue
			}
			s.answer.Objects++
			lowerKey := strings.ToLower(key)
			if !containsAll(lowerKey, words) {
				continue
			}
			matchCount++
			rank, name := 2, lowerKey[strings.IndexByte(lowerKey, '/')+1:]
			if name == s.text || lowerKey == s.text {
				rank = 0
			} else if strings.HasPrefix(name, s.text) {
				rank = 1
			}
			if len(namesByRank[rank]) < maxSearchResults {
				namesByRank[rank] = append(namesByRank[rank], foundName{typ.id, strings.Clone(key)})
			}
		}
	}
	all := slices.Concat(namesByRank[:]...)
	s.answer.Names = append([]foundName{}, all[:min(len(all), maxSearchResults)]...)
	s.answer.MoreNames = matchCount - len(s.answer.Names)
}

// findValues finds values of indexes. The most frequent values come first.
func (s *search) findValues() error {
	namespaceQuery := query.All()
	if s.namespace != "" {
		namespaceQuery = query.Namespace(s.namespace)
	}
	for _, typ := range s.types {
		if s.handler.hidesValues(typ) {
			continue
		}
		for _, i := range typ.indexes {
			counts, err := s.handler.evaluator(typ).values(s.ctx, i.Name, namespaceQuery)
			if s.ctx.Err() != nil {
				return context.Cause(s.ctx)
			}
			if err != nil {
				continue // the index is being built
			}
			for _, c := range counts {
				if text := valueText(c); c.Count > 0 && strings.Contains(strings.ToLower(text), s.text) {
					s.answer.Values = append(s.answer.Values, foundValue{typ.id, i.Name,
						valueCount{Text: text, Query: conditionFor(i.Name, c.Parts), Count: c.Count}})
				}
			}
		}
	}
	slices.SortStableFunc(s.answer.Values, func(a, b foundValue) int { return cmp.Compare(b.Count, a.Count) })
	s.answer.Values = s.answer.Values[:min(len(s.answer.Values), maxSearchResults)]
	return nil
}

// findContents finds values in objects. It skips types with hidden values.
func (s *search) findContents(deadline time.Time, unlimited bool) {
	plainText := longestPlainPart(s.text)
	var scratch []byte
	for _, typ := range s.types {
		hidden := s.handler.hidesValues(typ)
		for key, object := range typ.informer.Snapshot().AllStored() {
			if len(s.answer.Contents) == maxSearchResults || s.ctx.Err() != nil ||
				!unlimited && time.Now().After(deadline) {
				return
			}
			if !s.isVisible(typ, key) {
				continue
			}
			s.answer.Searched++
			if hidden || !mayContain(object, plainText, &scratch) {
				continue
			}
			content := s.handler.visibleContent(typ.informer, object)
			if content == nil {
				continue
			}
			if path, text, ok := findText(content.Object, "", s.text); ok {
				s.answer.Contents = append(s.answer.Contents, foundContent{typ.id, strings.Clone(key), path,
					snippet(text, s.text)})
			}
		}
	}
}

// longestPlainPart returns the longest part of a text that JSON does not escape.
func longestPlainPart(text string) string {
	longest := ""
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&/`, r)
	}) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// mayContain returns false if a value of an object cannot contain a text in any case. It is fast, and also
// returns true for names of fields.
func mayContain(object any, text string, scratch *[]byte) bool {
	packed, ok := object.(dynamicinformer.PackedObject)
	if !ok || text == "" {
		return true
	}
	contains := true
	_ = packed.ReadJSON(func(json []byte) error { // a damaged object is decoded as far as possible
		lowerJSON := append((*scratch)[:0], json...)
		for i, c := range lowerJSON {
			if 'A' <= c && c <= 'Z' {
				lowerJSON[i] = c + 'a' - 'A'
			}
		}
		*scratch, contains = lowerJSON, bytes.Contains(lowerJSON, []byte(text))
		return nil
	})
	return contains
}

// findText returns the first value that contains a text, in the order of the fields. It does not search name,
// namespace and managedFields.
func findText(value any, path, text string) (foundPath, foundText string, ok bool) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			fieldPath := outline.JoinPath(path, key)
			if slices.Contains([]string{".metadata.managedFields", ".metadata.name", ".metadata.namespace"},
				fieldPath) {
				continue
			}
			if foundPath, foundText, ok = findText(value[key], fieldPath, text); ok {
				return foundPath, foundText, ok
			}
		}
	case []any:
		for i, element := range value {
			elementPath := outline.JoinPath(path, strconv.Itoa(i))
			if foundPath, foundText, ok = findText(element, elementPath, text); ok {
				return foundPath, foundText, ok
			}
		}
	case nil:
	default:
		foundText = cellText(value)
		if s, isText := value.(string); isText {
			foundText = s
		}
		return path, foundText, strings.Contains(strings.ToLower(foundText), text)
	}
	return "", "", false
}

// snippet returns the part of a value around a text.
func snippet(value, text string) string {
	if len(value) <= maxSnippetBytes {
		return value
	}
	start := min(max(0, strings.Index(strings.ToLower(value), text)-20), len(value)-1)
	part := strings.ToValidUTF8(value[start:min(len(value), start+maxSnippetBytes)], "")
	if start > 0 {
		part = "…" + part
	}
	return part + "…"
}
