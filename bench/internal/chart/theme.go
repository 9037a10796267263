package chart

import (
	"image/color"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// Theme is a set of colours for a page of one brightness. The background is the page's.
type Theme struct {
	// Name is a part of the names of files.
	Name string
	// ink is for text, faint for axes and grids.
	ink, faint color.Color
	// ours are for what is to stand out, one after the other, peers for what it is compared with.
	ours, peers []color.Color
}

// Themes are all there are.
func Themes() []Theme { return []Theme{light, dark} }

var (
	light = Theme{
		Name: "light", ink: rgb(0x1f2328), faint: rgb(0xd1d9e0),
		ours:  []color.Color{rgb(0x0969da), rgb(0x1a7f37), rgb(0x8250df), rgb(0xbf3989), rgb(0x1b7c83)},
		peers: []color.Color{rgb(0x818b98), rgb(0xbc4c00), rgb(0x9a6700), rgb(0xcf222e), rgb(0x59636e)},
	}
	dark = Theme{
		Name: "dark", ink: rgb(0xe6edf3), faint: rgb(0x3d444d),
		ours:  []color.Color{rgb(0x58a6ff), rgb(0x3fb950), rgb(0xbc8cff), rgb(0xf778ba), rgb(0x39c5cf)},
		peers: []color.Color{rgb(0x8b949e), rgb(0xffa657), rgb(0xd29922), rgb(0xff7b72), rgb(0xb1bac4)},
	}
)

func rgb(code uint32) color.Color {
	return color.RGBA{R: uint8(code >> 16), G: uint8(code >> 8), B: uint8(code), A: 0xff}
}

// The sizes of all charts.
const (
	width      = 800
	rowHeight  = 26
	curvesTall = 400
	legendRow  = 15
	titleSize  = vg.Length(15)
	textSize   = vg.Length(12)
)

func sized(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}
