// Package chart draws bars and curves as SVG, in colours for light and for dark pages.
package chart
