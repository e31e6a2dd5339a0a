//! The attributes of the kernel's tables, chains, rules and sets.
//!
//! Names and numbers are those of `include/uapi/linux/netfilter/nf_tables.h`; the kernel writes them in
//! `nf_tables_fill_table_info` and its neighbours in `net/netfilter/nf_tables_api.c`.

use std::borrow::Cow;

use netlink_pipeline::{NetworkU32, NetworkU64, Raw, attribute_table};

attribute_table! {
    /// A table.
    TableAttributes {
        NFTA_TABLE_NAME = 1 => name: Cow<'a, str>,
        NFTA_TABLE_FLAGS = 2 => flags: NetworkU32,
    }
}

attribute_table! {
    /// A chain.
    ChainAttributes {
        NFTA_CHAIN_TABLE = 1 => table: Cow<'a, str>,
        NFTA_CHAIN_NAME = 3 => name: Cow<'a, str>,
        NFTA_CHAIN_HOOK = 4 => hook: HookAttributes<'a>,
        NFTA_CHAIN_POLICY = 5 => policy: NetworkU32,
        NFTA_CHAIN_TYPE = 7 => kind: Cow<'a, str>,
    }
}

attribute_table! {
    /// The hook of a base chain.
    HookAttributes {
        NFTA_HOOK_HOOKNUM = 1 => number: NetworkU32,
        NFTA_HOOK_PRIORITY = 2 => priority: NetworkU32,
    }
}

attribute_table! {
    /// A rule, without its expressions.
    RuleAttributes {
        NFTA_RULE_TABLE = 1 => table: Cow<'a, str>,
        NFTA_RULE_CHAIN = 2 => chain: Cow<'a, str>,
        NFTA_RULE_USERDATA = 7 => user_data: Raw<'a>,
    }
}

attribute_table! {
    /// A set or map, without its elements.
    SetAttributes {
        NFTA_SET_TABLE = 1 => table: Cow<'a, str>,
        NFTA_SET_NAME = 2 => name: Cow<'a, str>,
        NFTA_SET_FLAGS = 3 => flags: NetworkU32,
        NFTA_SET_KEY_TYPE = 4 => key_type: NetworkU32,
        NFTA_SET_KEY_LEN = 5 => key_length: NetworkU32,
        NFTA_SET_DATA_TYPE = 6 => data_type: NetworkU32,
        NFTA_SET_DATA_LEN = 7 => data_length: NetworkU32,
        NFTA_SET_TIMEOUT = 11 => timeout: NetworkU64,
    }
}

attribute_table! {
    /// A counter, quota or flow table: all have the name of their table in the same place.
    ObjectAttributes {
        NFTA_OBJ_TABLE = 1 => table: Cow<'a, str>,
    }
}
