package naming_test

import (
	"errors"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/naming"
)

func TestCompileBoundsTheProgram(t *testing.T) {
	for _, text := range []string{
		`^https?://([^/]+)`, `^[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?$`, `(?i)\p{L}+`,
		`^(?P<host>[^/]+)(:[0-9]{1,5})?$`, ``,
		`^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$`,
	} {
		if _, err := naming.CompileRegexp(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	var large *naming.RegexpTooLargeError
	for _, text := range []string{`(?:a?){1000}b{1000}`, `(?:(?:a?b?){30}){30}`, `[a-z]{1000}`,
		strings.Repeat("abc", 1000)} {
		if _, err := naming.CompileRegexp(text); !errors.As(err, &large) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	var wrong *syntax.Error
	if _, err := naming.CompileRegexp(`(a`); !errors.As(err, &wrong) {
		t.Error(err)
	}
}
