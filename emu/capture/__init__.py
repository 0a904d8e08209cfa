"""Captures: frames with their times, written as pcapng and read from pcap, pcapng and ERF."""

from emu.capture.reader import read as read
from emu.capture.record import Record as Record
