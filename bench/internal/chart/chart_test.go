package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var bars = Bars{Title: "Client CPU", Rows: []Bar{
	{Name: "peer & co", Text: "10 s", Value: 10}, {Name: "one of ours", Text: "2 s", Value: 2, Ours: true}, {Name: "nothing", Text: "0"},
}}

var lines = Curves{
	Title: "Heap", X: "objects",
	XText: func(n float64) string { return fmt.Sprintf("%.0f", n) },
	YText: func(n float64) string { return fmt.Sprintf("%.0f B", n) },
	Lines: []Line{
		{Name: "peer", Points: []Point{{1000, 300}, {200_000, 400}}},
		{Name: "one of ours", Ours: true, Points: []Point{{1000, 60}, {10_000, 40}, {200_000, 45}}},
	},
}

// texts returns what is written in an SVG, after checking that it is well-formed.
func texts(t *testing.T, svg []byte) []string {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(string(svg)))
	var all []string
	within := ""
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			within = token.Name.Local
		case xml.EndElement:
			within = ""
		case xml.CharData:
			if within == "text" {
				all = append(all, string(token))
			}
		}
	}
}

func TestTexts(t *testing.T) {
	for _, theme := range Themes() {
		for _, tc := range []struct {
			draw func(Theme) ([]byte, error)
			want []string
		}{
			{bars.SVG, []string{"Client CPU", "peer & co", "10 s", "one of ours", "2 s", "nothing", "0"}},
			{lines.SVG, []string{"Heap", "objects", "peer", "one of ours", "1000", "200000", "50 B", "200 B"}},
		} {
			svg, err := tc.draw(theme)
			if err != nil {
				t.Fatal(err)
			}
			got := texts(t, svg)
			for _, want := range tc.want {
				if !slices.Contains(got, want) {
					t.Errorf("%s: no %q among %q", theme.Name, want, got)
				}
			}
			again, err := tc.draw(theme)
			if err != nil || string(again) != string(svg) {
				t.Errorf("%s: another picture at the second time: %v", theme.Name, err)
			}
		}
	}
}

// TestContrast: every colour of text and curves stands out from the page, as the guidelines for accessible pages ask for:
// 4.5 to 1 for text, 3 to 1 for shapes.
func TestContrast(t *testing.T) {
	pages := map[string]string{"light": "#FFFFFF", "dark": "#0D1117"}
	for _, theme := range Themes() {
		for _, draw := range []func(Theme) ([]byte, error){bars.SVG, lines.SVG} {
			svg, err := draw(theme)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(string(svg), "\n") {
				least := 3.0
				if strings.Contains(line, "font-family") {
					least = 4.5
				}
				for _, code := range regexp.MustCompile(`(?:fill|stroke):(#[0-9A-Fa-f]{6})`).FindAllStringSubmatch(line, -1) {
					if strings.EqualFold(code[1], hex(theme.faint)) {
						continue // grids are to be faint
					}
					if ratio := contrast(t, code[1], pages[theme.Name]); ratio < least {
						t.Errorf("%s: %s has a contrast of %.1f", theme.Name, code[1], ratio)
					}
				}
				if strings.Contains(line, "#-") {
					t.Errorf("no colour: %s", line)
				}
			}
		}
	}
}

func hex(c interface{ RGBA() (r, g, b, a uint32) }) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02X%02X%02X", r>>8, g>>8, b>>8)
}

// contrast is that of two colours by WCAG, where channels are squared in place of the exact curve.
func contrast(t *testing.T, a, b string) float64 {
	luminance := func(code string) float64 {
		n, err := strconv.ParseUint(code[1:], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		channel := func(shift int) float64 {
			v := float64(n>>shift&0xff) / 255
			return v * v
		}
		return 0.2126*channel(16) + 0.7152*channel(8) + 0.0722*channel(0)
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
