package report

import "testing"

func TestQuantity(t *testing.T) {
	tests := []struct {
		metric string
		value  float64
		want   string
	}{
		{"cpu_s", 10.24, "10.2 s"},
		{"cpu_s", 0.25, "250 ms"},
		{"cpu_s", 0.9996, "1.00 s"},
		{"cpu_us_per_object", 139.7, "140 µs"},
		{"latency_p99_ms", 1234, "1.23 s"},
		{"get_hot_ns", 35.52, "35.5 ns"},
		{"get_hot_ns", 44430, "44.4 µs"},
		{"list_hot_ns_per_object", 9.999, "10.0 ns"},
		{"heap_b_per_object", 12059.4, "12,059 B"},
		{"alloc_b_per_event", 99.96, "100 B"},
		{"peak_rss_b", 735 << 20, "735 MiB"},
		{"peak_rss_b", 1.5 * (1 << 30), "1.50 GiB"},
		{"heap_b_per_object", -12, "-12.0 B"},
		{"object_allocs", 317.1, "317"},
		{"object_allocs", 0.00001, "0"},
		{"list_allocs_per_object", 1234567, "1,234,567"},
	}
	for _, tt := range tests {
		if got := formatQuantity(tt.metric, tt.value); got != tt.want {
			t.Errorf("formatQuantity(%q, %v) = %q, want %q", tt.metric, tt.value, got, tt.want)
		}
	}
}

func TestFormatRatio(t *testing.T) {
	for ratio, want := range map[float64]string{6.754: "6.75×", 14: "14.0×", 250.4: "250×", 0.47: "0.47×",
		0.00083: "0.00083×"} {
		if got := formatRatio(ratio); got != want {
			t.Errorf("formatRatio(%v) = %q, want %q", ratio, got, want)
		}
	}
}
