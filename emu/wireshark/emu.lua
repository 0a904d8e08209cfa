-- Wireshark and tshark read frames of emu's links with this:  tshark -X lua_script:emu.lua -i leaf0-eth1
--
-- EtherType 0x88B5: native InfiniBand, LRH to VCRC: Wireshark's own dissector reads it.
-- EtherType 0x88B6: link control. One byte says of which kind: 1, a flow-control packet (IBTA vol. 1, 7.9.4); 2, a PCIe
-- TLP (PCI Express Base Specification 5.0, 2.2), and what mlx5 devices write with it. What that is can only be guessed
-- from size and content: three preferences switch each guess off (-o pcie_tlp.doorbell:FALSE, wqe, cqe).

local NATIVE, LINK_CONTROL = 0x88b5, 0x88b6
local KINDS = { [1] = "flow-control packet", [2] = "TLP" }
local OPS = { [0] = "normal", [1] = "initialise" }
local FMT_TYPES = { [0x00] = "MRd", [0x20] = "MRd", [0x40] = "MWr", [0x60] = "MWr", [0x4a] = "CplD" }
local OPCODES = {
  [0x00] = "NOP", [0x01] = "SEND_INVAL", [0x08] = "RDMA_WRITE", [0x09] = "RDMA_WRITE_IMM", [0x0a] = "SEND",
  [0x0b] = "SEND_IMM", [0x0e] = "TSO", [0x10] = "RDMA_READ", [0x11] = "ATOMIC_CS", [0x12] = "ATOMIC_FA",
  [0x14] = "ATOMIC_MASKED_CS", [0x15] = "ATOMIC_MASKED_FA", [0x19] = "FMR", [0x1b] = "LOCAL_INV", [0x23] = "DUMP",
  [0x25] = "UMR", [0x2f] = "MMO",
}

local function set(...)
  local made = {}
  for _, each in ipairs({ ... }) do
    made[each] = true
  end
  return made
end

local REMOTE = set(0x08, 0x09, 0x10, 0x11, 0x12, 0x14, 0x15)
local ATOMIC, MASKED = set(0x11, 0x12, 0x14, 0x15), set(0x14, 0x15)
local OTHER_SEGMENTS = set(0x0e, 0x19, 0x1b, 0x23, 0x25, 0x2f) -- not shown
local FAR = set(0x20, 0x60) -- addresses of 64 bits
local FENCES = { [0] = "none", [1] = "initiator small", [3] = "strong ordering", [4] = "fence" }
local CQE_OPCODES = {
  [0] = "requester", [1] = "responder WRITE_IMM", [2] = "responder SEND", [3] = "responder SEND_IMM",
  [4] = "responder SEND_INVAL", [5] = "resize", [6] = "no packet", [12] = "signature error",
  [13] = "requester error", [14] = "responder error",
}
local SYNDROMES = {
  [0x01] = "local length", [0x02] = "local QP operation", [0x04] = "local protection", [0x05] = "WR flushed",
  [0x06] = "MW bind", [0x10] = "bad response", [0x11] = "local access", [0x12] = "remote invalid request",
  [0x13] = "remote access", [0x14] = "remote operation", [0x15] = "transport retry exceeded",
  [0x16] = "RNR retry exceeded", [0x22] = "remote aborted",
}

-- Makes a protocol's fields: {name, constructor, title, base, names}, filtered for as `protocol.name`.
local function fields_of(proto, prefix, list)
  local made, all = {}, {}
  for _, each in ipairs(list) do
    made[each[1]] = ProtoField[each[2]](prefix .. "." .. each[1], each[3], each[4], each[5])
    all[#all + 1] = made[each[1]]
  end
  proto.fields = all
  return made
end

local native = Proto("emu_native", "Native InfiniBand on a veth")
local control = Proto("emu_link", "emu link control")
local tlp = Proto("pcie_tlp", "PCIe TLP")
local doorbell = Proto("mlx5_doorbell", "mlx5 doorbell")
local wqe = Proto("mlx5_wqe", "mlx5 send WQE")
local cqe = Proto("mlx5_cqe", "mlx5 CQE")

local of_control = fields_of(control, "emu_link", {
  { "kind", "uint8", "Kind", base.DEC, KINDS },
  { "op", "uint8", "Op", base.DEC, OPS },
  { "vl", "uint8", "VL", base.DEC },
  { "fctbs", "uint16", "FCTBS", base.DEC },
  { "fccl", "uint16", "FCCL", base.DEC },
  { "lpcrc", "uint16", "LPCRC", base.HEX },
})
local of_tlp = fields_of(tlp, "pcie_tlp", {
  { "type", "uint8", "Fmt and Type", base.HEX, FMT_TYPES },
  { "tc", "uint8", "Traffic class", base.DEC },
  { "length", "uint16", "Length (DWs)", base.DEC },
  { "bytes", "uint16", "Bytes meant", base.DEC },
  { "requester", "uint16", "Requester ID", base.HEX },
  { "completer", "uint16", "Completer ID", base.HEX },
  { "tag", "uint16", "Tag", base.DEC },
  { "last_be", "uint8", "Last DW byte enables", base.HEX },
  { "first_be", "uint8", "First DW byte enables", base.HEX },
  { "address", "uint64", "Address", base.HEX },
  { "status", "uint8", "Completion status", base.DEC, { [0] = "successful" } },
  { "byte_count", "uint16", "Byte count still owed", base.DEC },
  { "lower_address", "uint8", "Lower address", base.HEX },
  { "data", "bytes", "Data" },
})
local of_doorbell = fields_of(doorbell, "mlx5_doorbell", {
  { "producer", "uint16", "Producer index", base.DEC },
  { "qpn", "uint24", "QPN", base.HEX },
})
local of_wqe = fields_of(wqe, "mlx5_wqe", {
  { "opmod", "uint8", "Opmod", base.HEX },
  { "index", "uint16", "WQE index", base.DEC },
  { "opcode", "uint8", "Opcode", base.HEX, OPCODES },
  { "qpn", "uint24", "QPN", base.HEX },
  { "ds", "uint8", "DS (segments of 16 B)", base.DEC },
  { "fence", "uint8", "Fence", base.DEC, FENCES },
  { "signaled", "bool", "CQ update" },
  { "solicited", "bool", "Solicited" },
  { "imm", "uint32", "Immediate", base.HEX },
  { "remote_addr", "uint64", "Remote address", base.HEX },
  { "rkey", "uint32", "rkey", base.HEX },
  { "byte_count", "uint32", "Byte count", base.DEC },
  { "lkey", "uint32", "lkey", base.HEX },
  { "addr", "uint64", "Address", base.HEX },
  { "inline_bytes", "uint32", "Inline byte count", base.DEC },
  { "inline", "bytes", "Inline data" },
  { "operands", "bytes", "Atomic operands" },
})
local of_cqe = fields_of(cqe, "mlx5_cqe", {
  { "opcode", "uint8", "Opcode", base.DEC, CQE_OPCODES },
  { "owner", "uint8", "Owner", base.DEC },
  { "solicited", "bool", "Solicited" },
  { "qpn", "uint24", "QPN", base.HEX },
  { "send_opcode", "uint8", "Send opcode", base.HEX, OPCODES },
  { "wqe_counter", "uint16", "WQE counter", base.DEC },
  { "srqn", "uint32", "SRQN", base.HEX },
  { "remote_qpn", "uint24", "Remote QPN", base.HEX },
  { "imm", "uint32", "Immediate", base.HEX },
  { "byte_count", "uint32", "Byte count", base.DEC },
  { "timestamp", "uint64", "Timestamp", base.DEC },
  { "syndrome", "uint8", "Syndrome", base.HEX, SYNDROMES },
  { "vendor_syndrome", "uint8", "Vendor syndrome", base.HEX },
})
local cut_short = ProtoExpert.new("emu_link.cut_short", "Cut short", expert.group.MALFORMED, expert.severity.ERROR)
local unknown =
  ProtoExpert.new("pcie_tlp.unknown", "Not MRd, MWr or CplD", expert.group.UNDECODED, expert.severity.NOTE)
control.experts, tlp.experts = { cut_short }, { unknown }
tlp.prefs.doorbell = Pref.bool("Take writes of 8 bytes for doorbells", true, "If they could be one")
tlp.prefs.wqe = Pref.bool("Take whole 64 bytes for WQEs", true, "If opcode and DS could be a WQE's; so BlueFlame")
tlp.prefs.cqe = Pref.bool("Take writes of 64 bytes for CQEs", true, "If they could be one")

-- What 8 bytes or more begin like: "doorbell" (no opcode, no DS), "wqe" or nothing.
local function kind_of_head(data)
  local opmod, opcode, ds = data(0, 1):uint(), data(3, 1):uint(), data(7, 1):uint()
  if ds == 0 then
    return opmod == 0 and opcode == 0 and data(4, 3):uint() > 0 and "doorbell" or nil
  end
  return OPCODES[opcode] and ds < 64 and (opmod == 0 or MASKED[opcode] or OTHER_SEGMENTS[opcode]) and "wqe" or nil
end

local function looks_like_wqe(data)
  return kind_of_head(data) == "wqe" and data(7, 1):uint() * 16 <= data:len()
    and data(8, 1):uint() == 0 and data(11, 1):bitfield(3, 1) == 0
end

local function looks_like_cqe(data)
  return data:len() == 64 and data(0, 17):bytes() == ByteArray.new(("00"):rep(17)) and data(57, 3):uint() > 0
    and CQE_OPCODES[data(63, 1):bitfield(0, 4)] and data(63, 1):bitfield(4, 2) == 0
end

-- Shows the first 8 bytes of a WQE, all that a plain doorbell has of it.
local function add_wqe_head(tree, data)
  tree:add(of_wqe.opmod, data(0, 1))
  tree:add(of_wqe.index, data(1, 2))
  tree:add(of_wqe.opcode, data(3, 1))
  tree:add(of_wqe.qpn, data(4, 3))
  tree:add(of_wqe.ds, data(7, 1))
  return string.format("%s QP 0x%x WQE %d", OPCODES[data(3, 1):uint()], data(4, 3):uint(), data(1, 2):uint())
end

-- Shows inline data or data segments, from `at` up to `stop`.
local function add_wqe_data(tree, data, at, stop)
  while at + 16 <= stop do
    local length = data(at, 4):bitfield(1, 31)
    if data(at, 1):bitfield(0, 1) == 1 then
      tree:add(of_wqe.inline_bytes, data(at, 4), length)
      tree:add(of_wqe.inline, data(at + 4, math.min(length, stop - at - 4)))
      return
    end
    local text = length == 0 and " (2 GiB)" or ""
    tree:add(of_wqe.byte_count, data(at, 4)):append_text(text)
    tree:add(of_wqe.lkey, data(at + 4, 4))
    tree:add(of_wqe.addr, data(at + 8, 8))
    at = at + 16
  end
end

local function add_wqe(tree, data)
  local opcode, stop = data(3, 1):uint(), data(7, 1):uint() * 16
  tree = tree:add(wqe, data(0, stop))
  local said = add_wqe_head(tree, data)
  local flags, at = data(11, 1), 16
  tree:add(of_wqe.fence, flags, flags:bitfield(0, 3))
  tree:add(of_wqe.signaled, flags, flags:bitfield(4, 1) == 1)
  tree:add(of_wqe.solicited, flags, flags:bitfield(6, 1) == 1)
  tree:add(of_wqe.imm, data(12, 4))
  if REMOTE[opcode] and at + 16 <= stop then
    tree:add(of_wqe.remote_addr, data(at, 8))
    tree:add(of_wqe.rkey, data(at + 8, 4))
    at = at + 16
  end
  if ATOMIC[opcode] then
    local size = opcode == 0x14 and data(0, 1):uint() == 9 and 32 or 16
    if at + size <= stop then
      tree:add(of_wqe.operands, data(at, size))
    end
    at = at + size
  end
  if not OTHER_SEGMENTS[opcode] then
    add_wqe_data(tree, data, at, stop)
  end
  return said
end

local function add_cqe(tree, data)
  local opcode = data(63, 1):bitfield(0, 4)
  tree = tree:add(cqe, data)
  tree:add(of_cqe.opcode, data(63, 1), opcode)
  tree:add(of_cqe.owner, data(63, 1), data(63, 1):bitfield(7, 1))
  tree:add(of_cqe.solicited, data(63, 1), data(63, 1):bitfield(6, 1) == 1)
  tree:add(of_cqe.send_opcode, data(56, 1))
  tree:add(of_cqe.qpn, data(57, 3))
  tree:add(of_cqe.wqe_counter, data(60, 2))
  tree:add(of_cqe.srqn, data(32, 4))
  if opcode == 13 or opcode == 14 then
    tree:add(of_cqe.vendor_syndrome, data(54, 1))
    tree:add(of_cqe.syndrome, data(55, 1))
  else
    tree:add(of_cqe.remote_qpn, data(25, 3))
    tree:add(of_cqe.imm, data(36, 4))
    tree:add(of_cqe.byte_count, data(44, 4))
    tree:add(of_cqe.timestamp, data(48, 8))
  end
  return string.format("CQE %s QP 0x%x WQE %d", CQE_OPCODES[opcode], data(57, 3):uint(), data(60, 2):uint())
end

-- Shows what mlx5 means by the data of a write or a completion; what it is in one line, or nothing.
local function add_meaning(tree, data, writes)
  if writes and data:len() == 8 and tlp.prefs.doorbell then
    local kind = kind_of_head(data)
    if kind == "wqe" then
      return "doorbell " .. add_wqe_head(tree:add(wqe, data), data)
    elseif kind == "doorbell" then
      tree = tree:add(doorbell, data)
      tree:add(of_doorbell.producer, data(1, 2))
      tree:add(of_doorbell.qpn, data(4, 3))
      return string.format("doorbell QP 0x%x producer %d", data(4, 3):uint(), data(1, 2):uint())
    end
  elseif writes and tlp.prefs.cqe and looks_like_cqe(data) then
    return add_cqe(tree, data)
  elseif tlp.prefs.wqe and data:len() > 0 and data:len() % 64 == 0 then
    local said, at = {}, 0
    while at < data:len() and looks_like_wqe(data(at)) do
      said[#said + 1] = add_wqe(tree, data(at))
      at = at + math.ceil(data(at + 7, 1):uint() / 4) * 64 -- whole WQEBBs
    end
    return #said > 0 and table.concat(said, ", ") or nil
  end
end

-- Bytes skipped in the first DW, and bytes meant, as the byte enables tell.
local function extent(words, first, last)
  local skipped, left_out = 0, 0
  while skipped < 4 and first:bitfield(7 - skipped, 1) == 0 do
    skipped = skipped + 1
  end
  local final, high = words == 1 and first or last, words == 1 and 4 or 0
  while left_out < 4 and final:bitfield(high + left_out, 1) == 0 do
    left_out = left_out + 1
  end
  if skipped == 4 then
    return 0, 0
  end
  return skipped, words * 4 - skipped - left_out
end

-- Shows a completion's header; offset and number of its bytes, and a line about them.
local function add_completion(tree, data, words)
  local lower, owed = data(11, 1):bitfield(1, 7), data(6, 2):bitfield(4, 12)
  owed = owed == 0 and 4096 or owed
  tree:add(of_tlp.completer, data(4, 2))
  tree:add(of_tlp.status, data(6, 1), data(6, 1):bitfield(0, 3))
  tree:add(of_tlp.byte_count, data(6, 2), owed)
  tree:add(of_tlp.requester, data(8, 2))
  tree:add(of_tlp.lower_address, data(11, 1), lower)
  local count = math.min(owed, words * 4 - lower % 4)
  return lower % 4, count, string.format("CplD %d B of %d still owed, lower address 0x%02x", count, owed, lower)
end

local function add_request(tree, data, words)
  local far = FAR[data(0, 1):uint()]
  local address = data(8, far and 8 or 4)
  local skipped, count = extent(words, data(7, 1), data(7, 1))
  tree:add(of_tlp.requester, data(4, 2))
  tree:add(of_tlp.last_be, data(7, 1), data(7, 1):bitfield(0, 4))
  tree:add(of_tlp.first_be, data(7, 1), data(7, 1):bitfield(4, 4))
  local first = UInt64(address:bitfield(far and 32 or 0, 32), far and address:bitfield(0, 32) or 0) + skipped
  tree:add(of_tlp.address, address, first)
  local text = first:tohex():gsub("^0+(%x)", "%1")
  return skipped, count, string.format("%s %d B at 0x%s", FMT_TYPES[data(0, 1):uint()], count, text)
end

function tlp.dissector(buffer, pinfo, parent)
  pinfo.cols.protocol = "PCIe"
  pinfo.cols.info = "TLP cut short"
  local tree = parent:add(tlp, buffer())
  if buffer:len() < 12 then
    return tree:add_proto_expert_info(cut_short)
  end
  local data, code = buffer(), buffer(0, 1):uint()
  tree:add(of_tlp.type, data(0, 1))
  if not FMT_TYPES[code] then
    pinfo.cols.info = string.format("TLP of Fmt and Type 0x%02x", code)
    return tree:add_proto_expert_info(unknown)
  end
  local header_bytes = FAR[code] and 16 or 12
  if data:len() < header_bytes then
    return tree:add_proto_expert_info(cut_short)
  end
  local words = data(2, 2):bitfield(6, 10)
  words = words == 0 and 1024 or words
  local tag_at = code == 0x4a and 10 or 6
  local tag = data(1, 1):bitfield(0, 1) * 512 + data(1, 1):bitfield(4, 1) * 256 + data(tag_at, 1):uint()
  tree:add(of_tlp.tc, data(1, 1), data(1, 1):bitfield(1, 3))
  tree:add(of_tlp.length, data(2, 2), words)
  tree:add(of_tlp.tag, data(tag_at, 1), tag)
  local skipped, count, line = (code == 0x4a and add_completion or add_request)(tree, data, words)
  tree:add(of_tlp.bytes, data(2, 2), count):set_generated()
  line = line .. (FMT_TYPES[code] == "MWr" and "" or string.format(", tag %d", tag))
  pinfo.cols.info = line
  if FMT_TYPES[code] == "MRd" then
    return
  elseif data:len() < header_bytes + words * 4 then
    tree:add_proto_expert_info(cut_short)
  elseif count > 0 then
    local payload = data(header_bytes + skipped, count)
    tree:add(of_tlp.data, payload)
    local meaning = add_meaning(parent, payload, FMT_TYPES[code] == "MWr")
    pinfo.cols.info = meaning and line .. ": " .. meaning or line
  end
end

-- Wireshark has a dissector for these, but up to 4.0 at least it looks for LRH, GRH and BTH in their 6 bytes as well.
local function add_flow_control(tree, pinfo, data)
  local op, vl = data(0, 2):bitfield(0, 4), data(2, 2):bitfield(0, 4)
  local fctbs, fccl = data(0, 2):bitfield(4, 12), data(2, 2):bitfield(4, 12)
  tree:add(of_control.op, data(0, 1), op)
  tree:add(of_control.fctbs, data(0, 2), fctbs)
  tree:add(of_control.vl, data(2, 1), vl)
  tree:add(of_control.fccl, data(2, 2), fccl)
  tree:add_le(of_control.lpcrc, data(4, 2))
  pinfo.cols.info = string.format("FCP %s VL %d FCTBS %d FCCL %d", OPS[op] or "of reserved op " .. op, vl, fctbs, fccl)
end

function control.dissector(buffer, pinfo, parent)
  pinfo.cols.protocol = "emu link"
  local kind = buffer:len() > 0 and buffer(0, 1):uint()
  local tree = parent:add(control, buffer(0, kind == 1 and math.min(7, buffer:len()) or math.min(1, buffer:len())))
  if not kind then
    return tree:add_proto_expert_info(cut_short)
  end
  tree:add(of_control.kind, buffer(0, 1))
  pinfo.cols.info = "link control kind " .. kind
  if KINDS[kind] and buffer:len() < (kind == 1 and 7 or 2) then
    tree:add_proto_expert_info(cut_short)
  elseif kind == 1 then
    add_flow_control(tree, pinfo, buffer(1, 6))
  elseif kind == 2 then
    tlp.dissector:call(buffer(1):tvb(), pinfo, parent)
  end
end

function native.dissector(buffer, pinfo, parent)
  Dissector.get("infiniband"):call(buffer, pinfo, parent)
end

local ether_types = DissectorTable.get("ethertype")
ether_types:add(NATIVE, native)
ether_types:add(LINK_CONTROL, control)
