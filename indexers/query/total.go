package query

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
)

// measureTotal accumulates the values of a measure.
type measureTotal struct {
	sum             *big.Rat
	extreme         cell // for min and max
	values, skipped int
}

// add adds a value. It fails if the value's type is ambiguous.
func (t *measureTotal) add(m measureColumn, c cell) error {
	if m.valueType == sortkey.Any && hasSeveralTypes(c.text) {
		return fmt.Errorf("cannot compute %s(%s): %s may be a quantity or a duration; write %[1]s(%[2]s as quantity) or %[1]s(%[2]s as duration), or name an index with a type",
			m.function, m.name, c.text)
	}
	if c.mistyped {
		t.skipped++
		return nil
	}
	switch m.function {
	case "min", "max":
		if sign := c.compare(t.extreme); t.values == 0 || m.function == "min" && sign < 0 ||
			m.function == "max" && sign > 0 {
			t.extreme = c
		}
	default:
		n, ok := m.number(c.text)
		if !ok {
			t.skipped++
			return nil
		}
		if t.sum == nil {
			t.sum = new(big.Rat)
		}
		t.sum.Add(t.sum, n)
	}
	t.values++
	return nil
}

// hasSeveralTypes reports whether a text, such as 30m, can be a quantity or a duration.
func hasSeveralTypes(text string) bool {
	_, number := sortkey.Number.Canonical(text)
	_, quantity := sortkey.Quantity.Canonical(text)
	_, duration := sortkey.ParseDuration(text)
	return quantity && duration && !number
}

// number parses a value exactly; a duration as nanoseconds.
func (m measureColumn) number(text string) (*big.Rat, bool) {
	if m.valueType == sortkey.Duration {
		d, ok := sortkey.ParseDuration(text)
		return new(big.Rat).SetInt64(int64(d)), ok
	}
	canonical, ok := sortkey.Number.Canonical(text)
	if !ok && m.valueType != sortkey.Number {
		canonical, ok = sortkey.Quantity.Canonical(text)
	}
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetString(canonical)
}

func (t *measureTotal) result(m measureColumn) MeasureResult {
	out := MeasureResult{Values: t.values, Skipped: t.skipped}
	switch {
	case t.values == 0:
	case m.function == "min", m.function == "max":
		out.Value = t.extreme.text
	default:
		n := t.sum
		if m.function == "avg" {
			n = new(big.Rat).Quo(n, new(big.Rat).SetInt64(int64(t.values)))
		}
		out.Value = m.format(n)
	}
	return out
}

// format formats a number as a value of the measure's type.
func (m measureColumn) format(n *big.Rat) string {
	if m.valueType == sortkey.Duration {
		quotient := new(big.Int).Quo(n.Num(), n.Denom())
		if quotient.IsInt64() {
			return time.Duration(quotient.Int64()).String()
		}
		seconds := new(big.Int).Quo(quotient, big.NewInt(int64(time.Second)))
		return seconds.String() + "s" // out of range of time.Duration
	}
	digits, exact := n.FloatPrec()
	if !exact {
		f, _ := n.Float64()
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	text := n.FloatString(digits)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
