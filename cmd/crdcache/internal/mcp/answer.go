package mcp

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/naming"
)

// Budgets are in bytes. reservedBytes are for parts that are set with rows, maxCell for a text in a row.
const (
	defaultBudget, minBudget, maxBudget = 4 << 10, 1 << 10, 64 << 10
	reservedBytes, maxCell              = 160, 160
)

// answer is the JSON of an answer. It has about as many bytes as its budget at most.
type answer struct {
	// Complete reports whether everything was read. Unknown has the reasons why not.
	Complete bool     `json:"complete"`
	Unknown  []string `json:"unknown,omitempty"`
	// Freshness says where the objects were read: in a cache, in files, or in the cluster during this call.
	// ContactSeconds is the time since the last contact of a cache with the API server, and ResourceVersion
	// the version of its objects.
	Freshness       string   `json:"freshness"`
	ContactSeconds  *float64 `json:"contactSeconds,omitempty"`
	ResourceVersion string   `json:"resourceVersion,omitempty"`
	// Since is the token for the changes after this answer.
	Since   string   `json:"since,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Shown   string   `json:"shown,omitempty"`
	Columns []string `json:"columns,omitempty"`
	Rows    [][]any  `json:"rows,omitempty"`
	Skip    int      `json:"skip,omitempty"` // for the next page
	// Namespaces has the numbers of all objects of a query by namespace if not all are shown.
	Namespaces [][]any `json:"namespaces,omitempty"`
	// Events has the latest Kubernetes Events about an object: namespace, time, count, type, reason, message.
	Events [][]any `json:"events,omitempty"`
	Data   any     `json:"data,omitempty"`
}

// setRows sets the rows that fit the budget besides the other parts, of those after skip. Texts are shortened
// until one fits. total is the number of all rows.
func (a *answer) setRows(rows [][]any, skip, total, budget int) {
	a.Rows = nil
	budget -= len(jsontext.Compact(a)) + reservedBytes
	for maxText := maxCell; maxText > 4 && len(a.Rows) == 0; maxText /= 2 {
		size := 0
		for _, row := range rows {
			row = shorten(row, maxText, max(len(row), maxText/8)).([]any)
			if size += len(jsontext.Compact(row)) + 1; size > budget {
				break
			}
			a.Rows = append(a.Rows, row)
		}
	}
	a.Shown = fmt.Sprintf("%d of %d", len(a.Rows), total)
	if a.Skip = skip + len(a.Rows); a.Skip >= total {
		a.Skip = 0
		return
	}
	a.Shown += " shown: narrow the question, use aggregate, raise maxBytes, or pass skip"
}

// setData sets the data, in as much detail as fits the budget.
func (a *answer) setData(value any, budget int) {
	for limit := maxBudget; limit > 1; limit /= 4 {
		if a.Data = shorten(value, limit, max(limit/8, 2)); len(jsontext.Compact(a)) <= budget-reservedBytes {
			if limit < maxBudget {
				a.Notes = append(a.Notes, "long values are cut: name paths, or raise maxBytes")
			}
			return
		}
	}
	a.Data = "it does not fit: name paths, or raise maxBytes"
}

// setNotes sorts the lines that a verb has printed to stderr. They have a part of the budget.
func (a *answer) setNotes(text string, budget int) {
	size, omitted := 0, 0
	for line := range strings.Lines(text) {
		line = shorten(strings.TrimSpace(line), 2*maxCell, 1).(string)
		reason, isError := strings.CutPrefix(line, "error: ")
		switch {
		case (isError || len(a.Unknown) > 0) && size > 0 && size+len(reason) > budget/2:
			omitted++
		case isError || len(a.Unknown) > 0:
			size += len(reason)
			a.Unknown = append(a.Unknown, reason)
		case line != "" && len(jsontext.Compact(a.Notes))+len(line) < budget/3:
			a.Notes = append(a.Notes, line)
		}
	}
	if omitted > 0 {
		a.Unknown = append(a.Unknown, fmt.Sprintf("… (%d more)", omitted))
	}
}

// addUnknown adds a reason why the answer is not complete.
func (a *answer) addUnknown(reason string) {
	a.Complete, a.Unknown = false, append(a.Unknown, shorten(reason, maxCell, 1).(string))
}

func (a *answer) setFreshness(report *session.Report, readsFiles bool) {
	a.Freshness = "read during this call"
	switch {
	case readsFiles:
		a.Freshness = "files"
	case !report.Contact.IsZero():
		a.Freshness, a.ResourceVersion = "live cache", strings.Join(report.Versions, ",")
		a.ContactSeconds = new(math.Round(time.Since(report.Contact).Seconds()*10) / 10)
	}
}

// clean shows control, format and private characters, which could hide or reorder text, as escapes.
func clean(text string) string {
	var b strings.Builder
	for _, r := range text {
		isHidden := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
		if isHidden && r != '\n' && r != '\t' {
			fmt.Fprintf(&b, `\u{%x}`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// shorten returns a copy of decoded JSON with clean texts of at most maxText bytes, and lists and maps of at
// most maxItems elements. A shortened value has its length.
func shorten(value any, maxText, maxItems int) any {
	switch v := value.(type) {
	case string:
		text := v
		if len(v) > maxText {
			text = strings.ToValidUTF8(v[:maxText], "")
		}
		if text = clean(text); len(text) <= maxText && len(v) <= maxText {
			return text
		}
		return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:min(len(text), maxText)], ""), len(v))
	case []any:
		items := naming.Map(v[:min(len(v), maxItems)],
			func(item any) any { return shorten(item, maxText, maxItems) })
		if len(v) > maxItems {
			items = append(items, fmt.Sprintf("… (%d elements)", len(v)))
		}
		return items
	case map[string]any:
		items := map[string]any{}
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i == maxItems {
				items["…"] = fmt.Sprintf("%d fields", len(v))
				break
			}
			items[shorten(key, maxText, 1).(string)] = shorten(v[key], maxText, maxItems)
		}
		return items
	}
	return value
}
