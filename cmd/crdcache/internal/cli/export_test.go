package cli

import (
	"testing"
	"time"
)

// SetAccountInterval sets the interval of checks of the exec plugin's account until the test ends.
func SetAccountInterval(t *testing.T, interval time.Duration) {
	before := accountInterval
	accountInterval = interval
	t.Cleanup(func() { accountInterval = before })
}
