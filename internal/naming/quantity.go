package naming

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxQuantityExponent limits the digits of a quantity.
const maxQuantityExponent = 8192

// ParseQuantity parses a quantity. Unlike [resource.ParseQuantity], it refuses a unit without a number, which
// is 0 there, and a number whose digits take minutes to write out.
func ParseQuantity(text string) (resource.Quantity, error) {
	if !strings.ContainsAny(text, "0123456789") {
		return resource.Quantity{}, fmt.Errorf("%q has no number; write one such as 64Mi", text)
	}
	if !isTractable(text) {
		return resource.Quantity{}, fmt.Errorf("%.20q... has too many digits; write one such as 64Mi", text)
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return q, fmt.Errorf("%q is no quantity; write one such as 64Mi: %w", text, err)
	}
	return q, nil
}

// isTractable rejects quantities that take apimachinery minutes: it writes out all digits of 1e-40000000.
func isTractable(text string) bool {
	if len(text) > maxQuantityExponent {
		return false
	}
	i := strings.LastIndexAny(text, "eE")
	if i < 0 || strings.Trim(text[i+1:], "+-0123456789") != "" || text[i+1:] == "" { // or a unit: E, Ei
		return true
	}
	exponent, err := strconv.Atoi(text[i+1:])
	return err == nil && max(exponent, -exponent) <= maxQuantityExponent
}
