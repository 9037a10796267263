package sortkey

import (
	"math"
	"strconv"
	"strings"

	"github.com/crdcache/crdcache/internal/naming"
)

// decimal is ±0.digits × 10^exponent. digits has no leading or trailing zeros and is empty for zero.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// maxExponent limits the size of keys and texts.
const maxExponent = 4096

// newDecimal trims the digits of ±0.digits × 10^exponent.
func newDecimal(negative bool, digits string, exponent int) (decimal, bool) {
	trimmed := strings.TrimLeft(digits, "0")
	exponent -= len(digits) - len(trimmed)
	trimmed = strings.TrimRight(trimmed, "0")
	if trimmed == "" {
		return decimal{}, true
	}
	return decimal{negative, trimmed, exponent}, max(exponent, -exponent) <= maxExponent
}

// parseDecimal parses an optional sign, digits with at most one point, and an optional exponent.
func parseDecimal(text string) (decimal, bool) {
	mantissa, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[i+1:]); err != nil || max(exponent, -exponent) > 2*maxExponent {
			return decimal{}, false
		}
		mantissa = text[:i]
	}
	negative := strings.HasPrefix(mantissa, "-")
	mantissa = strings.TrimPrefix(strings.TrimPrefix(mantissa, "-"), "+")
	if len(mantissa) < len(text)-1 && strings.HasPrefix(text, "-+") {
		return decimal{}, false
	}
	integer, fraction, _ := strings.Cut(mantissa, ".")
	digits := integer + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return decimal{}, false
	}
	return newDecimal(negative, digits, len(integer)+exponent)
}

// key consists of a byte for the sign, the exponent and the digits. For negative numbers it is inverted and
// terminated, so that more digits come first.
func (d decimal) key() string {
	if d.digits == "" {
		return "\x02"
	}
	e := uint16(d.exponent + math.MaxInt16)
	b := append([]byte{3, byte(e >> 8), byte(e)}, d.digits...)
	if d.negative {
		b[0] = 1
		for i := range b[1:] {
			b[1+i] = ^b[1+i]
		}
		b = append(b, 0xff)
	}
	return string(b)
}

func decimalOfKey(key string) (decimal, bool) {
	if key == "\x02" {
		return decimal{}, true
	}
	b := []byte(key)
	if len(b) < 4 || b[0] != 1 && b[0] != 3 {
		return decimal{}, false
	}
	d := decimal{negative: b[0] == 1}
	if d.negative {
		b = b[:len(b)-1]
		for i := range b[1:] {
			b[1+i] = ^b[1+i]
		}
	}
	d.exponent = (int(b[1])<<8 | int(b[2])) - math.MaxInt16
	d.digits = string(b[3:])
	return d, true
}

// String formats the number without exponent unless it would be mostly zeros.
func (d decimal) String() string {
	var text string
	switch n := len(d.digits); {
	case n == 0:
		return "0"
	case d.exponent > 40 || d.exponent < -20:
		text = d.digits[:1]
		if n > 1 {
			text += "." + d.digits[1:]
		}
		text += "e" + strconv.Itoa(d.exponent-1)
	case d.exponent <= 0:
		text = "0." + strings.Repeat("0", -d.exponent) + d.digits
	case d.exponent >= n:
		text = d.digits + strings.Repeat("0", d.exponent-n)
	default:
		text = d.digits[:d.exponent] + "." + d.digits[d.exponent:]
	}
	if d.negative {
		return "-" + text
	}
	return text
}

// int64 returns the number if it is an integer in range.
func (d decimal) int64() (int64, bool) {
	if d.exponent < len(d.digits) || d.exponent > 19 {
		return 0, d.digits == ""
	}
	i, err := strconv.ParseInt(d.String(), 10, 64)
	return i, err == nil
}

// parseQuantity parses units with apimachinery, which rounds up fractions of a nano.
func parseQuantity(text string) (decimal, bool) {
	q, err := naming.ParseQuantity(text)
	if err != nil {
		return decimal{}, false
	}
	dec := q.AsDec()
	digits := dec.UnscaledBig().String()
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimPrefix(digits, "-")
	return newDecimal(negative, digits, len(digits)-int(dec.Scale()))
}
