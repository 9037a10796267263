package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// formatQuantity formats a figure for people with three digits. The suffix of the metric determines the unit,
// and the value its prefix.
func formatQuantity(metric string, value float64) string {
	unit := metric
	for _, per := range []string{"_per_object", "_per_event"} {
		unit = strings.TrimSuffix(unit, per)
	}
	unit = unit[strings.LastIndexByte(unit, '_')+1:]
	switch unit {
	case "s":
		return formatSeconds(value)
	case "ms":
		return formatSeconds(value / 1e3)
	case "us":
		return formatSeconds(value / 1e6)
	case "ns":
		return formatSeconds(value / 1e9)
	case "b":
		return formatBytes(value)
	case "times":
		return formatRatio(value)
	default:
		return formatDigits(value)
	}
}

func formatSeconds(value float64) string {
	return formatScaled(value, 1e-9, 1000, "ns", "µs", "ms", "s")
}

func formatBytes(value float64) string {
	return formatScaled(value, 1, 1<<10, "B", "KiB", "MiB", "GiB")
}

// formatScaled writes value with the largest unit that leaves at least 1 before the decimal point. base is
// the value of the first unit, step the factor from one unit to the next. Up to 100,000 bytes are written as
// bytes, because sizes of objects are then easier to compare.
func formatScaled(value, base, step float64, units ...string) string {
	amount := value / base
	for i, unit := range units {
		last := i == len(units)-1
		if last || math.Abs(amount) < step-0.5 || unit == "B" && math.Abs(amount) < 1e5 {
			return formatDigits(amount) + " " + unit
		}
		amount /= step
	}
	return "" // there are always units
}

// formatDigits formats a number with three significant digits, or with all digits and commas if it has more.
func formatDigits(value float64) string {
	magnitude := math.Abs(value)
	switch {
	case magnitude < 0.005:
		return "0"
	case magnitude < 9.995:
		return strconv.FormatFloat(value, 'f', 2, 64)
	case magnitude < 99.95:
		return strconv.FormatFloat(value, 'f', 1, 64)
	default:
		return formatThousands(int64(math.Round(value)))
	}
}

// formatThousands writes a number with commas between thousands.
func formatThousands(n int64) string {
	if n < 0 {
		return "-" + formatThousands(-n)
	}
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return formatThousands(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

func formatRatio(ratio float64) string {
	if ratio < 0.1 {
		return strconv.FormatFloat(ratio, 'g', 2, 64) + "×"
	}
	return formatDigits(ratio) + "×"
}
