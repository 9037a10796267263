package indexers

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
)

// notNumber replaces a value that is not a number. It is a text that is not a value of any type.
const notNumber = "\x01"

// numbers convert the values of types to decimal numbers: times and durations to seconds, booleans to 0 and
// 1.
var numbers = map[sortkey.Type]func(text string) (string, bool){
	sortkey.Any:      numberFromText,
	sortkey.Int:      sortkey.Int.Canonical,
	sortkey.Number:   sortkey.Number.Canonical,
	sortkey.Quantity: sortkey.Quantity.Canonical,
	sortkey.Bool: func(text string) (string, bool) {
		number, ok := map[string]string{"true": "1", "false": "0"}[text]
		return number, ok
	},
	sortkey.Duration: func(text string) (string, bool) {
		d, ok := sortkey.ParseDuration(text)
		return formatFloat(d.Seconds()), ok
	},
	sortkey.Time: func(text string) (string, bool) {
		canonical, ok := sortkey.Time.Canonical(text)
		t, err := time.Parse(time.RFC3339, canonical)
		return strconv.FormatInt(t.Unix(), 10), ok && err == nil
	},
	sortkey.Date: func(text string) (string, bool) {
		t, err := time.Parse(time.DateOnly, text)
		return strconv.FormatInt(t.Unix(), 10), err == nil
	},
}

// integerPercent is the form of a percentage in Kubernetes.
var integerPercent = newLazyPattern(`^[0-9]+%$`)

// numberFromText converts a text without a declared type as kube-state-metrics does: a number, true, false,
// unknown, yes or no, a time, a quantity, a percentage, or a number in Go's syntax.
func numberFromText(text string) (string, bool) {
	if number, ok := sortkey.Number.Canonical(text); ok {
		return number, true
	}
	switch strings.ToLower(text) {
	case "true", "yes":
		return "1", true
	case "false", "no", "unknown":
		return "0", true
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return strconv.FormatInt(t.Unix(), 10), true
	}
	if integerPercent.compile().MatchString(text) {
		return sortkey.Number.Canonical(strings.TrimSuffix(text, "%") + "e-2")
	}
	if number, ok := sortkey.Quantity.Canonical(text); ok {
		return number, true
	}
	number, err := strconv.ParseFloat(text, 64)
	return formatFloat(number), err == nil && !math.IsInf(number, 0) && !math.IsNaN(number)
}

// combinations combine two values of one function of a metric.
var combinations = map[string]func(a, b float64) float64{
	"Sum": func(a, b float64) float64 { return a + b },
	"Min": func(a, b float64) float64 { return min(a, b) },
	"Max": func(a, b float64) float64 { return max(a, b) },
}

// combineValues combines the values of an object's keys that differ only in their last part, the value.
func (i *Index) combineValues(keys []string) []string {
	if len(keys) < 2 {
		return keys
	}
	type group struct {
		labels []string
		value  float64
	}
	var groups []group
	positions := map[string]int{}
	for _, key := range keys {
		parts := SplitValue(key)
		last := len(parts) - 1
		value, _ := strconv.ParseFloat(parts[last], 64)
		labels := strings.TrimSuffix(key, parts[last])
		n, exists := positions[labels]
		if !exists {
			n = len(groups)
			positions[labels] = n
			groups = append(groups, group{parts[:last], value})
			continue
		}
		groups[n].value = combinations[i.combine](groups[n].value, value)
	}
	for n, g := range groups {
		keys[n] = i.joinKey(append(g.labels, formatFloat(g.value)))
	}
	return keys[:len(groups)]
}
